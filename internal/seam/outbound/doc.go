// Package outbound sends requests to hosts that senders or settings name, and restricts them. It
// uses no proxy and no redirects, and only addresses that the caller allows. It checks an address
// when it connects, after the name was resolved, so that a name cannot lead to another place later.
package outbound
