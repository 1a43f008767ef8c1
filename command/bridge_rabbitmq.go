// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/bridge"
	"github.com/lullhq/lull/internal/operator/bridge/rabbitmq"
	"github.com/lullhq/lull/internal/operator/operate"
)

// rabbitEnv names the variable with the address of RabbitMQ. The address contains a password, and
// every process of the machine can read a command line.
const rabbitEnv = "LULL_RABBITMQ_URL"

// maxPrefetch is the limit of AMQP.
const maxPrefetch = 65535

type rabbitFlags struct {
	sending
	url, queue, park, ca string
	prefetch             int
}

func bridgeRabbitMQ(std *streams, t *target) *cobra.Command {
	f := rabbitFlags{sending: newSending(), prefetch: 100}
	return define(&cobra.Command{
		Use: "rabbitmq --queue NAME", Short: "Consume from a queue of RabbitMQ", Args: cobra.NoArgs,
		Long: "Consumes from a queue of RabbitMQ and sends each message to lull: to a 'lull dev', with --aws to the " +
			"live queue of a deployed sink, or to the queue whose URL --to names. RabbitMQ gets its acknowledgement " +
			"only once the queue has accepted the message. If either side is killed, nothing is lost. A message may " +
			"be sent twice: lull recognises the duplicate.\n\n" +
			"Give the address with its password in the environment variable " + rabbitEnv + ": other users of the " +
			"machine may read a command line. The bridge declares nothing: the queue must exist.\n\nSQS accepts at " +
			"most 1 MiB. With --payload, a larger body goes to S3, and its message refers to it. A message that SQS " +
			"always refuses goes to the queue of --park. Without --park it stays unacknowledged, and the log names it.\n\n" +
			"It logs a line a minute. After SIGTERM or Ctrl-C it still sends the messages that were delivered, for at " +
			"most --drain.",
		RunE: func(c *cobra.Command, _ []string) error { return runRabbitMQ(c.Context(), std, t, &f) },
	}, ends{
		exitOK:     "SIGTERM or Ctrl-C ended it",
		exitFailed: "RabbitMQ refused the user, the queue does not exist, or the address of --listen is in use",
		exitUsage:  "usage or settings: nothing was consumed",
	}, append(f.options(),
		laneFlag(&f.lane, "`LANE`, live or bulk; without it live"),
		flag("url", &f.url, "`ADDRESS` of RabbitMQ, amqp://USER:PASSWORD@HOST:PORT/VHOST or amqps://...; "+
			"without it the variable "+rabbitEnv),
		flag("queue", &f.queue, "`NAME` of the queue to consume from", needed("name the queue to consume from")),
		flag("park", &f.park, "`NAME` of a queue of the same virtual host for messages that SQS always refuses"),
		flag("ca", &f.ca, "`FILE` of certificates (PEM) that amqps:// trusts; without it the system's certificates"),
		flag("prefetch", &f.prefetch, "how many messages may be unconfirmed; at most so many are in memory",
			between(&f.prefetch, 1, maxPrefetch, fmt.Sprintf("1 to %d", maxPrefetch))),
	)...)
}

// check checks the flags without calling any service.
func (f *rabbitFlags) check(t *target) error {
	f.url = cmp.Or(f.url, os.Getenv(rabbitEnv))
	u, err := url.Parse(f.url)
	switch {
	case f.url == "":
		return usagef("--url: give the address of RabbitMQ, or set %s", rabbitEnv)
	case err != nil || u.Host == "" || u.Scheme != "amqp" && u.Scheme != "amqps":
		return usagef("--url %s: want an address such as amqps://USER:PASSWORD@HOST:5671/VHOST", operate.Shown(f.url))
	case f.ca != "" && u.Scheme != "amqps":
		return usagef("--ca: works only with an amqps:// address")
	case f.park == f.queue:
		return usagef("--park %s: name another queue than --queue, or RabbitMQ delivers parked messages again", f.park)
	}
	return f.sending.check(t)
}

func runRabbitMQ(ctx context.Context, std *streams, t *target, f *rabbitFlags) error {
	if err := f.check(t); err != nil {
		return err
	}
	trust, err := f.trust()
	if err != nil {
		return usage(err)
	}
	o := f.bridge(std, f.queue)
	o.Broker = rabbitmq.Broker{URL: f.url, Queue: f.queue, Park: f.park, Prefetch: f.prefetch, TLS: trust}
	done, err := f.open(ctx, t, &o)
	if err != nil {
		return err
	}
	defer done()
	return f.serve(ctx, bridge.New(o))
}

// trust returns the certificates of --ca, or nil for the certificates of the system.
func (f *rabbitFlags) trust() (*tls.Config, error) {
	if f.ca == "" {
		return nil, nil //nolint:nilnil // none is not an error
	}
	text, err := os.ReadFile(f.ca)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--ca %s: no certificate in PEM", f.ca)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
