package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// check is one line of the doctor's answer.
type check struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
}

func doctorCommand(t *target) *cobra.Command {
	var collection string
	var timeout time.Duration
	c := t.verb(&cobra.Command{
		Use: "doctor", Short: "Examine a stack and send one synthetic event through it",
		Long: "Reads queues, table and sinks, then publishes a synthetic document, waits until it is committed, reads it back from the sink, deletes it and\n" +
			"waits for that too. Exit 1 if anything is wrong.",
		Args: cobra.NoArgs,
	}, func(c *cobra.Command, api operate.API, _ []string) error {
		checks := examine(c.Context(), api, shard.Collection(collection), timeout)
		bad := 0
		for _, x := range checks {
			if !x.OK {
				bad++
			}
		}
		if err := t.print(c, checks, func(w io.Writer) {
			for _, x := range checks {
				mark := "ok"
				if !x.OK {
					mark = "BAD"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\n", mark, x.Check, x.Found)
			}
		}); err != nil {
			return err
		}
		if bad > 0 {
			return &exitError{exitFailed, fmt.Errorf("%d of %d checks are bad", bad, len(checks))}
		}
		return nil
	})
	c.Flags().StringVar(&collection, "collection", "content", "collection of the synthetic document; its source must accept native events")
	c.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long each of the two writes may take")
	return c
}

func examine(ctx context.Context, api operate.API, collection shard.Collection, timeout time.Duration) []check {
	var out []check
	add := func(name string, err error, found string) bool {
		if err != nil {
			found = err.Error()
		}
		out = append(out, check{name, err == nil, found})
		return err == nil
	}
	s, err := api.Status(ctx)
	if !add("queues and table can be read", err, fmt.Sprintf("%d queues, %d flights", len(s.Queues), s.Flights)) {
		return out
	}
	for _, k := range s.Sinks {
		var unwell error
		if k.Open {
			unwell = fmt.Errorf("unwell until %s", k.OpenUntil.Format(time.RFC3339))
		}
		add("sink "+k.Sink+" is well", unwell, "nothing keeps claims back")
	}
	var parked error
	if s.Letters > 0 {
		parked = fmt.Errorf("%d parked: see `lull dead list`", s.Letters)
	}
	add("no dead letters are parked", parked, "none")
	key, err := shard.NewDocID(collection, "lull-doctor")
	if !add("collection", err, string(collection)) {
		return out
	}
	version := time.Now().UnixMilli()
	body := `{"type":%q,"source":"/lull/doctor","subject":"lull-doctor","collection":%q,"sequence":"%d"%s}`
	put := fmt.Sprintf(body, "doc.changed", collection, version, `,"data":{"title":"lull doctor","synthetic":true}`)
	del := fmt.Sprintf(body, "doc.deleted", collection, version+1, "")
	began := time.Now()
	if !add("a synthetic event is published", publishOne(ctx, api, put), string(key)) {
		return out
	}
	_, err = waitFor(ctx, api, key, fmt.Sprint(version), timeout)
	if !add("it is committed", err, "after "+time.Since(began).Round(100*time.Millisecond).String()) {
		return out
	}
	d, err := api.Get(ctx, key)
	if err == nil && d.Version != fmt.Sprint(version) {
		err = fmt.Errorf("the sink holds version %s, want %d", d.Version, version)
	}
	add("the sink holds it", err, "version "+d.Version)
	if add("its delete is published", publishOne(ctx, api, del), string(key)) {
		_, err = waitFor(ctx, api, key, fmt.Sprint(version+1), timeout)
		add("the delete is committed", err, "the synthetic document is gone")
	}
	return out
}

func publishOne(ctx context.Context, api operate.API, body string) error {
	p, err := api.Publish(ctx, operate.Publication{Messages: []queue.Outgoing{{Body: body}}})
	if err == nil && len(p.Refused) > 0 {
		err = fmt.Errorf("refused: %s", p.Refused[0].Why)
	}
	return err
}
