// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"net/netip"
	"slices"
)

// reserved are ranges outside of the public internet that package netip does not recognise. In IPv4
// they are for the own network, shared addresses, protocol assignments, benchmarks, documentation
// and future use. In IPv6's public range they include addresses with an IPv4 address inside (Teredo
// and 6to4). Source: IANA's registries of special-purpose addresses.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("3fff::/20"),
}

// publicV6 is the range from which IANA assigns public IPv6 addresses. lull refuses all other IPv6
// addresses. Examples are site-local fec0::/10, and 64:ff9b::/96, which leads to an IPv4 address
// through NAT64.
var publicV6 = netip.MustParsePrefix("2000::/3")

// platform are addresses at which a cloud serves its own machines, including their credentials.
// These addresses are neither link-local nor reserved. Sources: the documentation of AWS (instance
// metadata, EKS Pod Identity), Google Cloud (metadata server) and Azure (virtual public address).
var platform = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("fd20:ce::254/128"),
	netip.MustParsePrefix("168.63.129.16/32"),
}

// ofPlatform reports whether a cloud serves its own machines at the address.
func ofPlatform(a netip.Addr) bool {
	return slices.ContainsFunc(platform, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Public reports whether an address belongs to the public internet.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsGlobalUnicast() && !ofPlatform(a) && !a.IsPrivate() && (a.Is4() || publicV6.Contains(a)) &&
		!slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(a) })
}
