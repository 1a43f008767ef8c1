package client

import (
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"
)

// busy is by how much an emulator's answers may be later than AWS's: it shares its processor with
// what asks it.
const busy = 5

// patience multiplies the limits of requests. AWS answers in milliseconds and a late answer is no
// answer; an emulator on a busy machine answers late.
var patience = patienceWith(os.Getenv("AWS_ENDPOINT_URL"))

// patienceWith is 1 wherever requests may go to AWS. An endpoint of one's own is no sign of an
// emulator, because VPC endpoints and FIPS proxies have addresses, too: it has to be on this very
// machine, or under the name that LocalStack has for that.
func patienceWith(endpoint string) time.Duration {
	u, err := url.Parse(endpoint)
	if err != nil {
		return 1
	}
	host := strings.ToLower(u.Hostname())
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return busy
	}
	if host == "localhost" || host == "localhost.localstack.cloud" ||
		strings.HasSuffix(host, ".localhost.localstack.cloud") {
		return busy
	}
	return 1
}
