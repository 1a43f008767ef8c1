package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

// check is one line of the doctor's answer.
type check struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
}

func (a *app) doctorCommand() *cobra.Command {
	var d doctor
	c := &cobra.Command{
		Use: "doctor", Short: "Examine a stack and send one synthetic event through it",
		Long: "Reads queues, table and sinks. Then it publishes a synthetic document, waits until it is " +
			"committed, reads it back from the sink, deletes it and waits until that is committed.",
		Args: cobra.NoArgs,
	}
	a.verb(c, func(c *cobra.Command, api operate.API, _ []string) error {
		if d.timeout <= 0 {
			return usagef("--timeout %s: want a time above 0", d.timeout)
		}
		d.api = api
		d.examine(c.Context())
		err := a.print(d.checks, func(w io.Writer) {
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
	})
	c.Flags().StringVar(&d.collection, "collection", "content", "collection `NAME` of the synthetic document")
	c.Flags().StringVar(&d.source, "source", "", "`NAME` of a native source, where the default source is of another kind")
	c.Flags().DurationVar(&d.timeout, "timeout", time.Minute, "how long each of the two writes may take, at most `D`")
	return exits(c, map[int]string{
		exitOK: "every check passed", exitFailed: "a check failed",
		exitUsage: "usage or settings",
	})
}

// doctor sends a synthetic event through a stack.
type doctor struct {
	api                operate.API
	collection, source string
	timeout            time.Duration
	checks             []check
	bad                int
}

// add notes a check and reports whether it went well.
func (d *doctor) add(name string, err error, found string) bool {
	if err != nil {
		found = err.Error()
		d.bad++
	}
	d.checks = append(d.checks, check{name, err == nil, found})
	return err == nil
}

func (d *doctor) examine(ctx context.Context) {
	s, err := d.api.Status(ctx)
	if !d.add("queues and table can be read", err, fmt.Sprintf("%d queues, %d flights", len(s.Queues), s.Flights)) {
		return
	}
	var wrong error
	if len(s.Wrong) > 0 {
		wrong = errors.New(strings.Join(s.Wrong, "; "))
	}
	d.add("queues and table are as the settings want them", wrong, "compared with the settings")
	for _, k := range s.Sinks {
		var unhealthy error
		if k.Open {
			unhealthy = fmt.Errorf("unhealthy until %s", k.OpenUntil.Format(time.RFC3339))
		}
		d.add("sink "+k.Sink+" is healthy", unhealthy, "its circuit breaker is closed")
	}
	var parked error
	if s.Letters > 0 {
		parked = fmt.Errorf("%d parked: see `lull dead list`", s.Letters)
	}
	d.add("no dead letters are parked", parked, "none")
	key, err := shard.NewDocID(shard.Collection(d.collection), "lull-doctor")
	if !d.add("the collection has a name", err, d.collection) {
		return
	}
	if _, err = d.api.Get(ctx, key); errors.Is(err, operate.ErrNotFound) {
		err = nil
	}
	if d.add("the sink can be read", err, d.collection) {
		d.send(ctx, key)
	}
}

// send puts the synthetic document and deletes it. Its versions grow from call to call.
func (d *doctor) send(ctx context.Context, key shard.DocID) {
	version := time.Now().UnixMilli()
	body := `{"type":%q,"source":"/lull/doctor","subject":"lull-doctor","collection":%q,"sequence":"%d"%s}`
	put := fmt.Sprintf(body, "doc.changed", d.collection, version, `,"data":{"title":"lull doctor","synthetic":true}`)
	del := fmt.Sprintf(body, "doc.deleted", d.collection, version+1, "")
	began := time.Now()
	if !d.add("a synthetic event is published", d.publish(ctx, put), string(key)) {
		return
	}
	_, err := waitFor(ctx, d.api, key, fmt.Sprint(version), d.timeout)
	if !d.add("it is committed", err, "after "+time.Since(began).Round(100*time.Millisecond).String()) {
		return
	}
	doc, err := d.api.Get(ctx, key)
	if err == nil && doc.Version != fmt.Sprint(version) {
		err = fmt.Errorf("the sink holds version %s, want %d", doc.Version, version)
	}
	d.add("the sink holds it", err, "version "+doc.Version)
	if d.add("its delete is published", d.publish(ctx, del), string(key)) {
		_, err = waitFor(ctx, d.api, key, fmt.Sprint(version+1), d.timeout)
		d.add("the delete is committed", err, "the synthetic document is gone")
	}
}

func (d *doctor) publish(ctx context.Context, body string) error {
	m := queue.Outgoing{Body: body}
	if d.source != "" {
		m.Attributes = map[string]queue.Attribute{queue.AttrSource: queue.Text(d.source)}
	}
	p, err := d.api.Publish(ctx, operate.Publication{Messages: []queue.Outgoing{m}})
	if err == nil && len(p.Refused) > 0 {
		err = fmt.Errorf("refused: %s", p.Refused[0].Why)
	}
	return err
}
