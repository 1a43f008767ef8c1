// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"testing"
)

func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	for _, a := range []string{
		"1.1.1.1", "93.184.215.14", "100.63.255.255", "100.128.0.1", "172.32.0.1", "192.0.1.1", "198.17.0.1",
		"198.20.0.1", "223.255.255.255", "::ffff:8.8.8.8", "2000::1", "2606:4700:4700::1111", "2001:200::1", "2003::1",
	} {
		if !Public(netip.MustParseAddr(a)) {
			t.Errorf("%s is public", a)
		}
	}
	for _, a := range []string{
		"0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.8.8.8", "169.254.169.254", "172.16.0.1",
		"192.0.0.170", "192.0.2.1",
		"192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1",
		"255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1",
		"2002:7f00:1::", "2001:db8::1",
		"2001::1", "100::1", "fec0::1", "feff::1", "fec0::1%eth0", "4000::1", "5f00::1", "3fff::1", "1fff::1",
		"64:ff9b::8.8.8.8", "64:ff9b::10.0.0.1", "2002:a00:1::1", "2002:a9fe:a9fe::", "::a9fe:a9fe",
		"100.64.0.0", "100.127.255.255", "192.0.0.1", "198.19.255.255", "192.88.99.1", "169.254.170.2", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "ff02::1",
		"168.63.129.16", "::ffff:168.63.129.16",
	} {
		if Public(netip.MustParseAddr(a)) {
			t.Errorf("%s is not public", a)
		}
	}
}

// If the settings name a host as private, the host may be in a private network. But it may never
// have an address at which a cloud serves its own machines.
func TestPrivateAddressesLeaveOutTheCloudsOwn(t *testing.T) {
	t.Parallel()
	for a, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "fd00::1": true, "fd00:ec3::254": true, "127.0.0.1": true, "::1": true,
		"168.63.129.15": true, "fd20:ce::253": true,
		"fd00:ec2::254": false, "fd00:ec2::23": false, "fd00:ec2::253": false, "fd00:ec2::254%eth0": false,
		"fd20:ce::254": false, "168.63.129.16": false, "::ffff:168.63.129.16": false,
		"100.100.100.200": false, "192.0.0.192": false, "169.254.169.254": false, "fe80::1": false,
	} {
		if got := Reachable(true)(netip.MustParseAddr(a)); got != want {
			t.Errorf("%s: got %t, want %t", a, got, want)
		}
	}
}

// lull checks the address to which the name resolves when lull connects.
func TestTheAddressIsJudgedWhenItIsConnectedTo(t *testing.T) {
	t.Parallel()
	transport, ok := Client(Reachable(false)).Transport.(*http.Transport)
	if !ok || transport.Proxy != nil {
		t.Fatal("the transport has a proxy, which would connect to any address")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	to := netip.MustParseAddrPort(ln.Addr().String())
	if c, err := transport.DialContext(t.Context(), "tcp", fmt.Sprintf("localhost:%d", to.Port())); err == nil {
		_ = c.Close()
		t.Error("lull connected to a name that leads to this machine")
	}
}
