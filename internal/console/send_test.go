// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// oneOfEach adds a source of every kind to the settings.
func oneOfEach(c *config.Config) {
	c.Sources, c.DefaultSource = map[string]config.Source{}, "native"
	for _, name := range source.Kinds() {
		kind, _ := source.Lookup(name)
		settings := kind.ExampleSettings()
		settings.Match = []source.Match{{Named: true}}
		c.Sources[name] = settings
		if bucket := kind.Example.Change.Bucket; bucket != "" {
			c.Payload.Allow = append(c.Payload.Allow, config.BucketPrefix{Bucket: bucket})
		}
	}
}

// written has the messages of a trial, as the page receives them.
type written struct{ Messages []draft }

// sendable returns the request that sends the messages.
func (w written) sendable(t *testing.T, unchecked bool) string {
	t.Helper()
	p := map[string]any{"messages": w.Messages, "unchecked": unchecked}
	text := usecasetest.Must(json.Marshal(p))(t)
	return string(text)
}

func TestEveryTrialOfEverySourceBecomesWhatItSays(t *testing.T) {
	t.Parallel()
	s := newStack(t, oneOfEach)
	var all struct {
		Forms  []operate.Form
		Trials []trial
		Why    string
	}
	s.into(&all, "/console/send/forms", "")
	if len(all.Forms) != len(source.Kinds()) || all.Why != "" || all.Forms[0].Source != "native" {
		t.Fatalf("got %d forms (%s), want one of each kind: %+v", len(all.Forms), all.Why, all.Forms)
	}
	for _, form := range all.Forms {
		for i, try := range all.Trials {
			var w written
			s.into(
				&w,
				"/console/send/write",
				fmt.Sprintf(`{"trial":%q,"source":%q,"collection":%q,"id":"sample-1"}`, try.ID,
					form.Source, form.Collection),
			)
			steps := trials[i].steps
			if try.ID == "poison" && form.Own {
				steps = steps[:2]
			}
			var done operate.Published
			if s.into(&done, "/console/send", w.sendable(t, true)); len(w.Messages) != len(steps) ||
				len(done.Sent) != len(steps) {
				t.Fatalf(
					"%s of %s: %d messages, %d events sent; want %d",
					try.ID,
					form.Source,
					len(w.Messages),
					len(done.Sent),
					len(steps),
				)
			}
			for j, step := range steps {
				e, want := done.Sent[j], "put"
				if step.delete {
					want = "delete"
				}
				if named := w.Messages[j].Attributes[queue.AttrSource].String; named != "" && named != form.Source ||
					named == "" && form.Source != "native" {
					t.Errorf("%s of %s, message %d is for source %q", try.ID, form.Source, j, named)
				}
				if step.body != "" {
					if e.Invalid == "" {
						t.Errorf("%s of %s, message %d: %+v, want it invalid", try.ID, form.Source, j, e)
					}
					continue
				}
				if e.Invalid != "" || e.Skip != "" || e.Operation != want ||
					!strings.HasSuffix(string(e.Key), "sample-1") {
					t.Errorf(
						"%s of %s, message %d: %+v, want a %s of sample-1: %s",
						try.ID,
						form.Source,
						j,
						e,
						want,
						w.Messages[j].Body,
					)
				}
				if (step.waits > 0) != (w.Messages[j].After > form.Fresh) {
					t.Errorf("%s of %s, message %d: after %d ms", try.ID, form.Source, j, w.Messages[j].After)
				}
			}
		}
	}
}

func TestVersionsOfATrialAreInTheirOrder(t *testing.T) {
	t.Parallel()
	s := newStack(t, oneOfEach, func(c *config.Config) {
		for _, class := range []source.Class{source.ClassSeq, source.ClassTime, source.ClassLSN, source.ClassLex} {
			c.Sources["native-"+string(class)] = config.Source{
				Kind:  "native",
				Class: class,
				Match: []source.Match{{Named: true}},
			}
		}
	})
	forms := usecasetest.Must(s.API().Forms(t.Context()))(t)
	for _, form := range forms.Forms {
		w, err := (&console{Options: s.options}).drafts(
			t.Context(),
			sendAsk{Trial: "burst", Source: form.Source, ID: "a"},
		)
		if err != nil {
			t.Fatal(err)
		}
		keys := map[uint32]shard.OrderKey{}
		for i, d := range w {
			r := s.Sources.Decode(queue.Message{Body: d.Body, Attributes: d.Attributes, Sent: time.Now()})
			if len(r) != 1 || r[0].Invalid != nil {
				t.Fatalf("%s: %+v", form.Source, r)
			}
			keys[trials[1].steps[i].version] = r[0].Event.Key
		}
		for n := uint32(2); n <= 5; n++ {
			if keys[n] <= keys[n-1] {
				t.Errorf("%s: version %d has order key %s, not after %s", form.Source, n, keys[n], keys[n-1])
			}
		}
	}
}

func TestWhatIsSentIsBoundedCheckedAndNamed(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	var done operate.Published
	s.into(
		&done,
		"/console/send",
		`{"messages":[{"Body":"not JSON\u202e"},`+
			`{"Body":"{\"type\":\"doc.changed\",\"subject\":\"<script>\",\"sequence\":\"1\",\"data\":{}}"}]}`,
	)
	if done.Messages != 1 || len(done.Refused) != 1 || done.Refused[0].Message != 0 ||
		!strings.Contains(done.Refused[0].Why, "JSON") ||
		len(done.Sent) != 1 ||
		done.Sent[0].Key != "content#<script>" ||
		done.Sent[0].Message != 1 {
		t.Errorf("got %+v, want the first refused and the second sent", done)
	}
	const id = `,"id":"a"`
	for want, body := range map[string]string{
		"trial":               `{"trial":"<b>"` + id + `}`,
		"id is missing":       `{"trial":"one"}`,
		"not a JSON object":   `{"trial":"one","data":"[1]"` + id + `}`,
		"choose one":          `{"trial":"one","source":"nobody"` + id + `}`,
		"no source can write": `{"trial":"one","id":"a\u0000b"}`,
		"not the JSON":        `[`,
	} {
		s.refused(http.StatusBadRequest, want, "/console/send/write", body)
	}
	s.refused(http.StatusBadRequest, "the list is empty", "/console/send", `{}`)
	s.refused(
		http.StatusBadRequest,
		"101, but at most 100",
		"/console/send",
		`{"messages":[{}`+strings.Repeat(",{}", 100)+`]}`,
	)
	s.refused(http.StatusRequestEntityTooLarge, "at most", "/console/send", `"`+strings.Repeat("x", maxRequest)+`"`)
	s.refused(http.StatusBadRequest, "21 of them", "/console/send/states?key=a"+strings.Repeat("&key=a", 20), "")
	s.refused(http.StatusBadRequest, "key", "/console/send/states?key=nothing", "")
	var states struct {
		States []struct{ Key, State, Sentence string }
	}
	s.into(&states, "/console/send/states?key=content%23a&key=content%23%3Cscript%3E", "")
	if len(states.States) != 2 || states.States[1].Key != "content#<script>" || states.States[0].Sentence == "" {
		t.Errorf("got %+v, want two states", states)
	}
	s.options.API = deniedAPI
	s.refused(
		http.StatusForbidden,
		"The stack's publisher role has it",
		"/console/send",
		`{"messages":[{"Body":"{}"}]}`,
	)
	s.options.Send = false
	for _, path := range []string{"/console/send", "/console/send/write"} {
		if w := s.ask(path, "{}"); w.Code != http.StatusNotFound {
			t.Errorf("%s where nothing may be sent: got %d, want 404", path, w.Code)
		}
	}
	if w := s.ask("/console/about", ""); strings.Contains(w.Body.String(), `"send":true`) {
		t.Errorf("about says %s, though nothing may be sent", w.Body)
	}
}

// A version that corrects a dead letter and is below the committed one is never written.
func TestACorrectionBelowTheCommittedVersionIsStale(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.fresh("content#a")
	for version, want := range map[int]string{
		0: "Version 0 is STALE, and is never written: version 1 of content#a is committed, and is newer.", 2: "",
	} {
		body, _ := json.Marshal(event("a", version))
		for path, corrects := range map[string]bool{"/console/send?corrects=1": true, "/console/send": false} {
			var got struct {
				Messages int
				Stale    string
			}
			s.into(&got, path, fmt.Sprintf(`{"messages":[{"body":%s}],"unchecked":true}`, body))
			if got.Messages != 1 || got.Stale != want && corrects || got.Stale != "" && !corrects {
				t.Errorf("version %d, corrects %t: %+v, want %q", version, corrects, got, want)
			}
		}
	}
}
