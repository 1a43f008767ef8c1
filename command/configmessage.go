// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/terminal"
	"github.com/lullhq/lull/source"
)

// maxSamples is how many messages config check reads. shownDocument is how many bytes of a document
// it shows.
const (
	maxSamples    = 1000
	shownDocument = 2000
)

// sample shows how the settings decode one message.
type sample struct {
	Where  string         `json:"where,omitempty"`
	Source string         `json:"source,omitempty"`
	Rule   string         `json:"rule,omitempty"`
	Origin []originField  `json:"origin"`
	Missed []source.Miss  `json:"missed"`
	Sinks  []string       `json:"sinks"`
	Lane   string         `json:"lane"`
	Events []sampledEvent `json:"events"`
}

// originField is one fact from the envelopes, under the name of its field in match.
type originField struct {
	Field string `json:"field"`
	Value string `json:"value"`
}

// sampledEvent is one event of a message.
type sampledEvent struct {
	Op       string          `json:"op,omitempty"`
	Key      string          `json:"key,omitempty"`
	Version  string          `json:"version,omitempty"`
	Class    string          `json:"class,omitempty"`
	Ref      string          `json:"ref,omitempty"` // where the content is
	Document json.RawMessage `json:"document,omitempty"`
	Skip     string          `json:"skip,omitempty"`
	Reason   string          `json:"reason,omitempty"` // the reason of the dead letter
	Problem  string          `json:"problem,omitempty"`
	Warning  string          `json:"warning,omitempty"`
}

// samples decodes the messages of a file, a folder or standard input by the settings.
func samples(ctx context.Context, std *streams, cfg *config.Config, path, sink string) ([]sample, error) {
	if _, ok := cfg.Sinks[sink]; sink != "" && !ok {
		return nil, usagef("--sink: %s is not a sink of the settings", sink)
	}
	set, err := source.New(cfg)
	if err != nil {
		return nil, usage(err)
	}
	in, err := feed.Open(path, std.in)
	if err != nil {
		return nil, usage(err)
	}
	defer in.Close()
	all := []sample{}
	for m, err := range feed.All(in) {
		switch {
		case err != nil:
			return nil, usage(err)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case len(all) == maxSamples:
			return nil, usagef("--message: %s holds more than %d messages: take a part of them", path, maxSamples)
		}
		all = append(all, judge(cfg, set, m, sink))
	}
	if len(all) == 0 {
		return nil, usagef("--message: %s holds no message", path)
	}
	return all, nil
}

// judge decodes a message as receive would in the queue of the named sink. Without a name, it uses
// the sink that `lull publish` would choose.
func judge(cfg *config.Config, set *source.Set, t feed.Timed, sink string) sample {
	m := queue.Message{Body: t.Body, Attributes: t.Attributes, Sent: time.Now()}
	route := feed.RouteOf(cfg, set, m)
	at := set.At(route.Sink)
	if sink != "" {
		at = set.At(sink)
		route.Sink, route.Others, route.Events = sink, nil, at.Decode(m)
	}
	choice := at.Explain(m)
	s := sample{
		Where: t.Where, Source: choice.Source, Rule: choice.Rule, Origin: origins(choice.Origin),
		Missed: list(choice.Missed), Sinks: route.Sinks(), Lane: string(route.Lane),
	}
	for _, r := range route.Events {
		s.Events = append(s.Events, sampled(at, m, r))
	}
	return s
}

func origins(o event.Origin) []originField {
	all := []originField{}
	for _, f := range []originField{
		{"topic", o.Topic},
		{"bus", o.Bus},
		{"detailType", o.DetailType},
		{"bucket", o.Bucket},
		{"stream", o.Stream},
		{"queue", o.Queue},
	} {
		if f.Value != "" {
			all = append(all, f)
		}
	}
	return all
}

func sampled(set *source.Set, m queue.Message, r event.Result) sampledEvent {
	e := r.Event
	switch {
	case r.Invalid != nil:
		return sampledEvent{Key: string(r.Invalid.Doc), Reason: string(r.Invalid.Reason), Problem: problemOf(r.Invalid)}
	case r.Skip != "":
		return sampledEvent{Skip: r.Skip}
	}
	s := sampledEvent{
		Op: string(e.Op), Key: string(e.Doc), Version: e.Version, Class: e.Class.String(), Ref: e.DataRef,
		Warning: coarse(e.Version),
	}
	if e.Op == event.Delete || e.DataRef != "" {
		return s
	}
	document, err := set.Document(m, e)
	var bad *event.Invalid
	if errors.As(err, &bad) {
		s.Reason, s.Problem = string(bad.Reason), problemOf(bad)
	}
	s.Document = document
	if set.SelectsNothing(m, e) {
		s.Warning = cmp.Or(s.Warning, selectsNothing)
	}
	return s
}

const selectsNothing = "lull writes an empty document: the projection of the source selects nothing of the content"

// coarse returns a warning if a version is only a day, such as 2026-11-20. It is empty for other
// versions.
func coarse(version string) string {
	day, err := time.Parse(time.DateOnly, version)
	if err != nil {
		day, err = time.Parse(time.RFC3339Nano, version)
	}
	if h, m, s := day.Clock(); err != nil || h+m+s+day.Nanosecond() > 0 {
		return ""
	}
	return fmt.Sprintf("version %s is only a day, so it cannot order two edits of that day: lull keeps one of them, and "+
		"refuses the other. Send a time with seconds, or a counter. Otherwise the event time decides (json.time)", version)
}

// problemOf returns the error with its field. It leaves out the reason, which has its own column.
func problemOf(bad *event.Invalid) string {
	if bad.Field == "" || strings.Contains(bad.Problem, bad.Field) {
		return bad.Problem
	}
	return bad.Field + ": " + bad.Problem
}

// dead counts the messages that would become dead letters, as a whole or in part.
func dead(samples []sample) int {
	n := 0
	for _, s := range samples {
		if slices.ContainsFunc(s.Events, func(e sampledEvent) bool { return e.Problem != "" }) {
			n++
		}
	}
	return n
}

func (s sample) show(w io.Writer, i int) {
	name := fmt.Sprintf("message %d", i+1)
	if s.Where != "" {
		name += ", " + s.Where
	}
	terminal.Printf(w, "\n%s\n", terminal.Styled{Style: terminal.Bold, Text: name})
	for _, f := range s.Origin {
		terminal.Printf(w, "  %s: %s\n", f.Field, f.Value)
	}
	for _, miss := range s.Missed {
		var why []string
		for _, n := range miss.Needs {
			why = append(why, fmt.Sprintf("%s is %s, want %s", n.Field, cmp.Or(n.Has, "not there"), n.Want))
		}
		terminal.Printf(w, "  no: %s: %s\n", miss.Rule, strings.Join(why, "; "))
	}
	if s.Source != "" {
		terminal.Printf(w, "  yes: %s: source %s decodes it\n", s.Rule, s.Source)
	}
	to := strings.Join(s.Sinks, " and ")
	for _, e := range s.Events {
		switch {
		case e.Reason != "":
			terminal.Printf(w, "  %s: %s\n", terminal.Styled{Style: terminal.Red, Text: "dead letter " + e.Reason}, e.Problem)
		case e.Skip != "":
			terminal.Printf(w, "  skipped: %s\n", e.Skip)
		default:
			terminal.Printf(w, "  %s %s, version %s of class %s, to sink %s, lane %s\n", e.Op, e.Key, e.Version, e.Class, to, s.Lane)
		}
		if e.Warning != "" {
			terminal.Printf(w, "  %s: %s\n", terminal.Styled{Style: terminal.Yellow, Text: "warning"}, e.Warning)
		}
		switch {
		case e.Ref != "":
			terminal.Printf(w, "  content: %s, which lull loads when it writes\n", e.Ref)
		case len(e.Document) > shownDocument:
			terminal.Printf(w, "  %s... (%d bytes)\n", strings.ToValidUTF8(string(e.Document[:shownDocument]), ""), len(e.Document))
		case len(e.Document) > 0:
			terminal.Printf(w, "  %s\n", string(e.Document))
		}
	}
}
