// Package outages kills real search engines under `lull dev` and says how late documents are.
package outages
