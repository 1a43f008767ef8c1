// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
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
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source"
)

// sendTimeout bounds a call to SQS. It is long, because the bridge may run outside AWS on a slow
// line.
const sendTimeout = 20 * time.Second

func bridgeCommand(std *streams, t *target) *cobra.Command {
	return parent(&cobra.Command{
		Use: "bridge", Short: "Move messages from another system into lull's queue",
	}, bridgeRabbitMQ(std, t), bridgePostgres(std, t))
}

// sending is where a bridge sends its messages, and how it is watched.
type sending struct {
	to, lane, payload     string
	source, group, listen string
	drain                 time.Duration
	bucket, prefix        string
}

func newSending() sending { return sending{drain: 20 * time.Second} }

// options are the flags that every bridge has.
func (f *sending) options() []option {
	return []option{
		flag("to", &f.to, "with --aws: the `SINK` whose live queue gets the messages, without it the "+
			"default sink; or the URL of an SQS queue, which needs no settings"),
		flag("payload", &f.payload, "`s3://BUCKET/PREFIX` for bodies that are too large for SQS; payload.allow "+
			"of the source must list it"),
		flag("source", &f.source, "`NAME` of the source that decodes the messages (the attribute lull-source)"),
		flag("drain", &f.drain, "how long to send the messages that were delivered, after SIGTERM or Ctrl-C",
			between(&f.drain, 0, math.MaxInt64, "0 or more")),
		flag("listen", &f.listen, "`ADDR` on this machine that answers /healthz, such as 127.0.0.1:7072; "+
			"without it nothing listens"),
		groupFlag(&f.group),
	}
}

// check checks the flags without calling any service.
func (f *sending) check(t *target) error {
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
func (f *sending) direct() bool { return strings.Contains(f.to, "://") }

// bridge returns the options of a bridge that is not connected to a queue yet. The log names where
// its messages are from.
func (f *sending) bridge(std *streams, from string) bridge.Options {
	return bridge.Options{
		Source: f.source, Group: f.group, Drain: f.drain, Clock: clock.System{}, Log: logger(std).With("from", from),
	}
}

// open connects a bridge to its queue. The caller calls done after the bridge has ended.
func (f *sending) open(ctx context.Context, t *target, o *bridge.Options) (done func(), err error) {
	if t.stack || f.direct() {
		return func() {}, bridgeToQueue(ctx, t, f, o)
	}
	return bridgeToDev(ctx, t, f, o)
}

// serve runs a bridge, and answers /healthz if the flags say so.
func (f *sending) serve(ctx context.Context, b *bridge.Bridge) error {
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

// logger returns a log for the bridge: lines for people, or JSON with -o json.
func logger(std *streams) *slog.Logger {
	if std.output == "json" {
		return slog.New(slog.NewJSONHandler(std.err, nil))
	}
	return slog.New(slog.NewTextHandler(std.err, nil))
}

// bridgeToQueue sends to a queue in SQS. It needs the right sqs:SendMessage, and also
// sqs:GetQueueUrl if the settings name the queue.
func bridgeToQueue(ctx context.Context, t *target, f *sending, o *bridge.Options) error {
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
func liveQueues(ctx context.Context, t *target, account aws.Config, f *sending, o *bridge.Options) (
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
func bridgeToDev(ctx context.Context, t *target, f *sending, o *bridge.Options) (done func(), err error) {
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
