package client

import (
	"testing"
	"time"
)

func TestOnlyAnEmulatorOnThisMachineHasMoreTime(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]time.Duration{
		"":                                       1, // AWS itself
		"http://127.0.0.1:4566":                  busy,
		"http://127.8.0.1:4566":                  busy,
		"http://[::1]:4566":                      busy,
		"http://LOCALHOST:4566":                  busy,
		"http://localhost":                       busy,
		"https://localhost:4567":                 busy,
		"http://localhost.localstack.cloud:4566": busy,
		"http://sqs.us-east-1.localhost.localstack.cloud:4566": busy,

		"https://vpce-0a1b2c3d-e4f5.sqs.eu-west-1.vpce.amazonaws.com": 1,
		"https://dynamodb-fips.us-gov-west-1.amazonaws.com":           1,
		"http://10.0.0.7:4566":                                1,
		"http://host.docker.internal:4566":                    1,
		"https://localhost.example.org":                       1,
		"https://notlocalhost.localstack.cloud":               1,
		"https://proxy.example.org/?to=localhost":             1,
		"https://localhost@proxy.example.org":                 1,
		"127.0.0.1:4566":                                      1, // no address: FromEnv refuses it
		"http://127.0.0.1:4566\n":                             1,
		"https://evil.example.org/localhost.localstack.cloud": 1,
	} {
		if got := patienceWith(endpoint); got != want {
			t.Errorf("%q: got %d, want %d", endpoint, got, want)
		}
	}
}
