package main

import (
	"strings"
	"testing"
)

func TestBridgeNamesWhatIsWrongBeforeItConsumes(t *testing.T) {
	t.Parallel()
	const rabbit, secure = "--url=amqp://guest:hunter2@127.0.0.1:1/", "--url=amqps://127.0.0.1"
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"no address":              {[]string{"--queue", "q"}, rabbitEnv},
		"another protocol":        {[]string{"--queue", "q", "--url", "http://u:hunter2@127.0.0.1/"}, "--url http://u:xxxxx@127.0.0.1/"},
		"no queue":                {[]string{rabbit}, "--queue: name"},
		"parks where it consumes": {[]string{rabbit, "--queue", "q", "--park", "q"}, "--park q"},
		"prefetch":                {[]string{rabbit, "--queue", "q", "--prefetch", "0"}, "--prefetch 0: want 1 to 65535"},
		"certificates for none":   {[]string{rabbit, "--queue", "q", "--ca", "x.pem"}, "--ca: only amqps"},
		"no such file":            {[]string{secure, "--queue", "q", "--ca", "/nowhere.pem"}, "--ca: open /nowhere.pem"},
		"no certificates":         {[]string{secure, "--queue", "q", "--ca", "bridge.go"}, "no certificate in PEM"},
		"payload elsewhere":       {[]string{rabbit, "--queue", "q", "--aws", "--payload", "https://x/"}, "want s3://BUCKET/PREFIX"},
		"payload for dev":         {[]string{rabbit, "--queue", "q", "--payload", "s3://b/p"}, "does not read S3"},
		"a sink of dev":           {[]string{rabbit, "--queue", "q", "--to", "search"}, "--to search: add --aws"},
		"lane":                    {[]string{rabbit, "--queue", "q", "--lane", "x"}, "--lane x"},
		"listen":                  {[]string{rabbit, "--queue", "q", "--listen", "0.0.0.0:0"}, "--listen 0.0.0.0:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := lull(t, "", append([]string{"bridge", "rabbitmq"}, tt.args...)...)
			a.want(t, name, exitUsage, tt.says)
			if strings.Contains(a.errors, "hunter2") {
				t.Error("the password is printed")
			}
		})
	}
}
