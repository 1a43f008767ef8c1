// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/roundtrip"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

func doctorCommand(std *streams, t *target) *cobra.Command {
	var d doctor
	return define(&cobra.Command{
		Use: "doctor", Short: "Examine a stack and send one synthetic event through it",
		Long: "Reads queues, table and sinks. Then it publishes a synthetic document, waits until it is " +
			"committed, reads it back from the sink, deletes it and waits until that is committed. A sink that " +
			"cannot be read, such as a webhook, is not read.\n\n" +
			"If a source has the setting fetch, it connects to that host, with TLS, but sends no request. The host " +
			"would log a request for a document that does not exist.\n\n" +
			"The synthetic event has the form of a source of the settings. If messages of this source cannot contain a " +
			"document, as with S3, only the delete is published. If no message can describe a delete, nothing is " +
			"published: the answer says so and names the setting, and this does not count as bad.",
		Args: cobra.NoArgs,
		RunE: t.verb(func(c *cobra.Command, api operate.API, _ []string) error {
			d.api = api
			d.examine(c.Context())
			err := std.print(d.checks, func(w io.Writer) {
				for _, x := range d.checks {
					mark := terminal.Styled{Style: terminal.Green, Text: "ok"}
					if !x.OK {
						mark = bad("BAD")
					}
					terminal.Printf(w, "%s\t%s\t%s\n", mark, x.Check, x.Found)
				}
			})
			if err == nil && d.bad > 0 {
				return &exitError{exitFailed, fmt.Errorf("%d of %d checks are bad", d.bad, len(d.checks))}
			}
			return err
		}),
	}, ends{
		exitOK: "every check passed", exitFailed: "a check failed",
		exitUsage: "usage or settings",
	},
		flag("collection", &d.collection, "collection `NAME` of the synthetic document; without it the source's"),
		flag("source", &d.source, "`NAME` of the source whose form the synthetic event has; without it the first "+
			"source that can write one"),
		flag("timeout", &d.timeout, "the longest time `D` that each of the two writes may take; without it a minute "+
			"more than the collection's quiet window or pace", someTime(&d.timeout)),
	)
}

// doctorID is the id of the synthetic document.
const doctorID = "lull-doctor"

// doctor sends a synthetic event through a stack.
type doctor struct {
	api                operate.API
	collection, source string
	timeout            time.Duration
	checks             []roundtrip.Check
	bad                int
}

// add records a check and reports whether it succeeded.
func (d *doctor) add(name string, err error, found string) bool {
	if err != nil {
		found = err.Error()
		d.bad++
	}
	d.checks = append(d.checks, roundtrip.Check{Check: name, OK: err == nil, Found: found})
	return err == nil
}

// faultIf returns an error if is is true.
func faultIf(is bool, format string, args ...any) error {
	if is {
		return fmt.Errorf(format, args...)
	}
	return nil
}

func (d *doctor) examine(ctx context.Context) {
	s, err := d.api.Status(ctx)
	if !d.add("queues and table can be read", err, fmt.Sprintf("%d queues, %d flights", len(s.Queues), s.Flights)) {
		return
	}
	d.add("queues and table are as the settings want them",
		faultIf(len(s.Wrong) > 0, "%s", strings.Join(s.Wrong, "; ")), "compared with the settings")
	for _, k := range s.Sinks {
		unhealthy := faultIf(k.Open, "unhealthy until %s", k.OpenUntil.Format(time.RFC3339))
		if k.Pause != nil {
			unhealthy = fmt.Errorf("%s: see `lull resume`", pausedText(k.Pause))
		}
		d.add("sink "+k.Sink+" is healthy", unhealthy, "its circuit breaker is closed")
	}
	for _, e := range s.Enrichers {
		away := faultIf(e.Away, "away until %s: see docs/runbook/enricher-away.md", e.AwayUntil.Format(time.RFC3339))
		d.add("the enricher of "+string(e.Collection)+" answers", away, "it is not known to be away")
	}
	d.origins(ctx)
	d.add("no dead letters are parked", faultIf(s.Letters > 0, "%d parked: see `lull dead list`", s.Letters), "none")
	probe, err := d.api.Compose(ctx, d.event(false))
	found := "as a message of source " + probe.Source
	if key, ok := d.deleteless(ctx); err != nil && ok {
		found, err = "not checked: "+err.Error(), nil
		probe.Key = key
	}
	if !d.add("a synthetic event can be written", err, found) {
		return
	}
	if _, err = d.api.Get(ctx, probe.Key); errors.Is(err, operate.ErrNotFound) {
		err = nil
	}
	found = string(probe.Key.Collection())
	if errors.Is(err, operate.ErrWriteOnly) {
		found, err = "not checked: "+err.Error(), nil
	}
	if d.add("the sink can be read", err, found) && probe.Source != "" {
		d.send(ctx, probe)
	}
}

// deleteless returns the key of the synthetic document, if sources can write it but none can
// describe its delete. Then nothing would delete it.
func (d *doctor) deleteless(ctx context.Context) (key shard.DocID, ok bool) {
	ways, err := d.api.Forms(ctx)
	if err != nil {
		return "", false
	}
	for _, w := range ways.Forms {
		if d.source != "" && w.Source != d.source || d.collection != "" && w.Collection != d.collection {
			continue
		}
		if w.Deletes {
			return "", false
		}
		key, err = shard.NewDocID(shard.Collection(w.Collection), doctorID)
		ok = err == nil
	}
	return key, ok
}

// origins tries to connect to the hosts that documents are fetched from.
func (d *doctor) origins(ctx context.Context) {
	all, err := d.api.Origins(ctx)
	if err != nil {
		d.add("the hosts of fetch.url are known", err, "")
	}
	for _, from := range all {
		found := from.Host
		if from.Unchecked != "" {
			found = "not checked: " + from.Unchecked
		}
		away := faultIf(from.Problem != "", "%s: %s, from this machine", from.Host, from.Problem)
		d.add("source "+from.Source+" can be connected to", away, found)
	}
}

// event describes the synthetic document, or its delete.
func (d *doctor) event(remove bool) operate.Composition {
	return operate.Composition{
		Source: d.source, Collection: shard.Collection(d.collection), ID: doctorID,
		Own: true, Deletes: true, Delete: remove,
		Data: json.RawMessage(`{"title":"lull doctor","synthetic":true}`),
	}
}

// send puts the synthetic document and deletes it. Its versions are times.
func (d *doctor) send(ctx context.Context, put operate.Composed) {
	trip := roundtrip.Trip{
		Stack: d.api, Clock: clock.System{}, Document: doctorID, Source: put.Source,
		Collection: string(put.Key.Collection()), Allowed: allowed(ctx, d.api, put.Key, d.timeout), Poll: waitStep,
		Why: func(ctx context.Context, key shard.DocID) string {
			x, _ := d.api.Explain(ctx, key) // without its sentence if the stack does not answer
			return terminal.Line(x.Sentence)
		},
	}
	_, err := job.Run(ctx, job.Runner{Clock: clock.System{}, Dry: true}, trip.Begin(), func(c roundtrip.Check) {
		if d.checks = append(d.checks, c); !c.OK {
			d.bad++
		}
	})
	var found *roundtrip.Failure
	if err != nil && !errors.As(err, &found) { // a failure is among the checks
		d.add("the round trip ends", err, "")
	}
}
