// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/aws/sqs"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/operator/bridge"
	"github.com/lullhq/lull/internal/operator/bridge/rabbitmq"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source"
)

// rabbitEnv names the variable with the address of RabbitMQ. The address contains a password, and
// every process of the machine can read a command line.
const rabbitEnv = "LULL_RABBITMQ_URL"

// sendTimeout bounds a call to SQS. It is long, because the bridge may run outside AWS on a slow
// line.
const sendTimeout = 20 * time.Second

// maxPrefetch is the limit of AMQP.
const maxPrefetch = 65535

type bridgeFlags struct {
	url, queue, park, ca  string
	to, lane, payload     string
	source, group, listen string
	prefetch              int
	drain                 time.Duration
	bucket, prefix        string
}

func bridgeCommand(std *streams, t *target) *cobra.Command {
	return parent(&cobra.Command{
		Use: "bridge", Short: "Move messages from a broker into lull's queue",
	}, bridgeRabbitMQ(std, t))
}

func bridgeRabbitMQ(std *streams, t *target) *cobra.Command {
	f := bridgeFlags{prefetch: 100, drain: 20 * time.Second}
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
		RunE: func(c *cobra.Command, _ []string) error { return runBridge(c.Context(), std, t, &f) },
	}, ends{
		exitOK:     "SIGTERM or Ctrl-C ended it",
		exitFailed: "RabbitMQ refused the user, the queue does not exist, or the address of --listen is in use",
		exitUsage:  "usage or settings: nothing was consumed",
	},
		flag("url", &f.url, "`ADDRESS` of RabbitMQ, amqp://USER:PASSWORD@HOST:PORT/VHOST or amqps://...; "+
			"without it the variable "+rabbitEnv),
		flag("queue", &f.queue, "`NAME` of the queue to consume from", needed("name the queue to consume from")),
		flag("park", &f.park, "`NAME` of a queue of the same virtual host for messages that SQS always refuses"),
		flag("ca", &f.ca, "`FILE` of certificates (PEM) that amqps:// trusts; without it the system's certificates"),
		flag("to", &f.to, "with --aws: the `SINK` whose live queue gets the messages, without it the "+
			"default sink; or the URL of an SQS queue, which needs no settings"),
		laneFlag(&f.lane, "`LANE`, live or bulk; without it live"),
		flag("payload", &f.payload, "`s3://BUCKET/PREFIX` for bodies that are too large for SQS; payload.allow "+
			"of the source must list it"),
		flag("source", &f.source, "`NAME` of the source that decodes the messages (the attribute lull-source)"),
		flag("prefetch", &f.prefetch, "how many messages may be unconfirmed; at most so many are in memory",
			between(&f.prefetch, 1, maxPrefetch, fmt.Sprintf("1 to %d", maxPrefetch))),
		flag("drain", &f.drain, "how long to send the messages that were delivered, after SIGTERM or Ctrl-C",
			between(&f.drain, 0, math.MaxInt64, "0 or more")),
		flag("listen", &f.listen, "`ADDR` on this machine that answers /healthz, such as 127.0.0.1:7072; "+
			"without it nothing listens"),
		groupFlag(&f.group),
	)
}

// check checks the flags without calling any service.
func (f *bridgeFlags) check(t *target) error {
	f.url = cmp.Or(f.url, os.Getenv(rabbitEnv))
	u, err := url.Parse(f.url)
	switch {
	case f.url == "":
		return usagef("--url: give the address of RabbitMQ, or set %s", rabbitEnv)
	case err != nil || u.Host == "" || u.Scheme != "amqp" && u.Scheme != "amqps":
		return usagef("--url %s: want an address such as amqps://USER:PASSWORD@HOST:5671/VHOST", operate.Shown(f.url))
	case f.ca != "" && u.Scheme != "amqps":
		return usagef("--ca: only amqps:// has certificates")
	case f.park == f.queue:
		return usagef("--park %s: name another queue than --queue, or RabbitMQ delivers parked messages again", f.park)
	}
	if f.payload != "" {
		u, err := url.Parse(f.payload)
		if err != nil || u.Scheme != "s3" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return usagef("--payload %s: want s3://BUCKET/PREFIX", f.payload)
		}
		if f.bucket, f.prefix = u.Host, strings.TrimPrefix(u.Path, "/"); f.prefix != "" &&
			!strings.HasSuffix(f.prefix, "/") {
			f.prefix += "/"
		}
		if !t.stack && !f.direct() {
			return usagef("--payload: a 'lull dev' does not read S3; use --aws, or --to with the URL of a queue")
		}
	}
	if f.to != "" && !t.stack && !f.direct() {
		return usagef("--to %s: add --aws for the queue of a deployed sink; a 'lull dev' chooses the queue itself",
			f.to)
	}
	return nil
}

// direct reports whether --to is the URL of a queue.
func (f *bridgeFlags) direct() bool { return strings.Contains(f.to, "://") }

func runBridge(ctx context.Context, std *streams, t *target, f *bridgeFlags) error {
	if err := f.check(t); err != nil {
		return err
	}
	trust, err := f.trust()
	if err != nil {
		return usage(err)
	}
	o := bridge.Options{
		Broker: rabbitmq.Broker{URL: f.url, Queue: f.queue, Park: f.park, Prefetch: f.prefetch, TLS: trust},
		Source: f.source, Group: f.group, Drain: f.drain, Clock: clock.System{},
		Log: logger(std).With("from", f.queue),
	}
	done := func() {}
	if t.stack || f.direct() {
		err = bridgeToQueue(ctx, t, f, &o)
	} else {
		done, err = bridgeToDev(ctx, t, f, &o)
	}
	if err != nil {
		return err
	}
	defer done()
	b := bridge.New(o)
	if f.listen != "" {
		l, err := listenHere(ctx, f.listen)
		if err != nil {
			return err
		}
		mux := http.NewServeMux()
		mux.Handle("GET /healthz", b)
		s := &http.Server{
			Handler:      mux,
			ReadTimeout:  5 * time.Second,
			WriteTimeout: 5 * time.Second,
			IdleTimeout:  time.Minute,
		}
		go func() { _ = s.Serve(l) }()   // ends with Close
		defer func() { _ = s.Close() }() // no client needs an answer any more
	}
	if err := b.Run(ctx); err != nil {
		return &exitError{exitFailed, err}
	}
	return nil
}

// trust returns the certificates of --ca, or nil for the certificates of the system.
func (f *bridgeFlags) trust() (*tls.Config, error) {
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

// logger returns a log for the bridge: lines for people, or JSON with -o json.
func logger(std *streams) *slog.Logger {
	if std.output == "json" {
		return slog.New(slog.NewJSONHandler(std.err, nil))
	}
	return slog.New(slog.NewTextHandler(std.err, nil))
}

// bridgeToQueue sends to a queue in SQS. It needs the right sqs:SendMessage, and also
// sqs:GetQueueUrl if the settings name the queue.
func bridgeToQueue(ctx context.Context, t *target, f *bridgeFlags, o *bridge.Options) error {
	all, region := map[int][]string{1: {f.to}}, ""
	if f.direct() {
		u, err := url.Parse(f.to)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return usagef("--to %s: want a sink, or the URL of an SQS queue", operate.Shown(f.to))
		}
		if host := strings.Split(u.Host, "."); len(host) > 2 && host[0] == "sqs" {
			region = host[1]
		}
	}
	account, err := t.aws.account(ctx, region)
	if err == nil && !f.direct() {
		all, err = liveQueues(ctx, t, account, f, o)
	}
	if err != nil {
		return usage(err)
	}
	sends := map[int]sendFunc{} // by part
	for part, urls := range all {
		var queues []sendFunc
		for _, to := range urls {
			queues = append(queues, sqs.NewFrom(account, to, sendTimeout).Send)
		}
		sends[part] = toAll(queues)
	}
	o.Send = toParts(sends)
	if f.payload != "" {
		o.Payloads = s3.NewPayloads(account, f.bucket, f.prefix)
	}
	return nil
}

// toParts sends messages to the queues of a part. Its errors name the part if there are several.
func toParts(sends map[int]sendFunc) func(ctx context.Context, part int, out []queue.Outgoing) []error {
	return func(ctx context.Context, part int, out []queue.Outgoing) []error {
		errs := sends[part](ctx, out)
		for i, err := range errs {
			if err != nil && len(sends) > 1 {
				errs[i] = fmt.Errorf("part %d: %w", part, err)
			}
		}
		return errs
	}
}

type sendFunc = func(ctx context.Context, out []queue.Outgoing) []error

// toAll sends messages to several queues. A message is safe when all queues have it. If one queue
// fails, the message is sent again to all, and the rows recognize the duplicates.
func toAll(sends []sendFunc) sendFunc {
	return func(ctx context.Context, out []queue.Outgoing) []error {
		errs := make([]error, len(out))
		for _, send := range sends {
			answer := send(ctx, out)
			for i := range out {
				errs[i] = cmp.Or(errs[i], queue.ErrorAt(answer, i))
			}
		}
		return queue.Answer(errs)
	}
}

// liveQueues returns the URLs of a deployed sink's live queue, and of the queues of sinks that
// share its collections, by part. With several parts, the bridge must decode messages as the stacks
// do, so this program must link the kinds of their sources.
func liveQueues(ctx context.Context, t *target, account aws.Config, f *bridgeFlags, o *bridge.Options) (
	urls map[int][]string, err error,
) {
	cfg, err := t.loadConfig(config.KindsAny)
	if err == nil && cfg.Parts.Spread() {
		cfg, err = t.loadConfig(config.KindsLinked)
	}
	if err != nil {
		return nil, err
	}
	sink, lane := cmp.Or(f.to, cfg.DefaultSink), cmp.Or(flight.Lane(f.lane), flight.Live)
	if _, ok := cfg.Sinks[sink]; !ok {
		return nil, fmt.Errorf("--to %s: the settings have no such sink", sink)
	}
	client := awssqs.NewFromConfig(account)
	urls = map[int][]string{}
	for part := 1; part <= cfg.Parts.Of; part++ {
		at := cfg
		if cfg.Parts.Spread() {
			at = cfg.InPart(part)
		}
		for _, name := range cfg.Companions(sink) {
			url, err := queueURL(ctx, client, at, names.Of(at).Queue(name, lane))
			if err != nil {
				return nil, err
			}
			urls[part] = append(urls[part], url)
		}
	}
	if cfg.Parts.Spread() {
		sources, err := source.New(cfg)
		if err != nil {
			return nil, err
		}
		o.Parts, o.PartOf = cfg.Parts.Of, func(out queue.Outgoing) (int, error) {
			return feed.PartOf(cfg, sources.At(sink).Decode(queue.Message{
				Body: out.Body, Attributes: out.Attributes, Sent: o.Clock.Now(),
			}))
		}
	}
	return urls, nil
}

// bridgeToDev publishes to a `lull dev`, as an upstream would.
func bridgeToDev(ctx context.Context, t *target, f *bridgeFlags, o *bridge.Options) (done func(), err error) {
	api, done, err := t.open(ctx, config.KindsAny)
	if err != nil {
		return nil, err
	}
	o.Send = func(ctx context.Context, _ int, out []queue.Outgoing) []error {
		ctx, cancel := context.WithTimeout(ctx, sendTimeout)
		defer cancel()
		sent, err := api.Publish(ctx, operate.Publication{Messages: out, Lane: flight.Lane(f.lane), Unchecked: true})
		if err != nil {
			// Do not wrap err, because package backoff takes a wrapped timeout as final. This timeout is not
			// final.
			return queue.FailAll(len(out), fmt.Errorf("publish: %s", err)) //nolint:errorlint // on purpose
		}
		errs := make([]error, len(out))
		for _, r := range sent.Refused {
			errs[r.Message] = fmt.Errorf("%w: %s", queue.ErrContent, r.Why)
		}
		return queue.Answer(errs)
	}
	return done, nil
}
