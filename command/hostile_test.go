// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// evil is a text with which a sender controls a terminal, hides text and forges a line.
const evil = "x\x1b[31m\x1b]0;t\a\x00\r\nFORGED\tline \u009b2J\u0085\u202egnp.exe\u2066\u200f\u2028\x7f"

// safe fails the test if an answer has a control character other than newline and tab, or a forged
// line.
func (a answer) safe(t *testing.T, name string) {
	t.Helper()
	for _, text := range []string{a.out, a.errors} {
		for _, r := range text {
			if shard.Control(r) && r != '\n' && r != '\t' {
				t.Errorf("%s: printed %U in %q", name, r, text)
				return
			}
		}
		if strings.HasPrefix(name, "dead show") { // the body follows, as it was sent
			text, _, _ = strings.Cut(text, "\n\n")
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(line), "FORGED") {
				t.Errorf("%s: printed a forged line in %q", name, text)
			}
		}
	}
}

// hostile is a stack whose answers have the text evil everywhere.
type hostile struct {
	err  error // the error of every answer, nil for none
	tame bool  // the answers are empty, without the text evil
}

// evilly sets every text in a value to evil. If the value contains its own type, evilly also fills
// one level of that.
func evilly(v reflect.Value, within ...reflect.Type) {
	if v.Kind() == reflect.Struct {
		inside := 0
		for _, t := range within {
			if t == v.Type() {
				inside++
			}
		}
		if within = append(slices.Clone(within), v.Type()); inside > 1 {
			return
		}
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(evil)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		evilly(v.Elem(), within...)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && v.Type() != reflect.TypeFor[time.Time]() {
				evilly(v.Field(i), within...)
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			text, _ := json.Marshal(map[string]string{"title": evil}) //nolint:errchkjson // a text
			v.SetBytes(text)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		evilly(v.Index(0), within...)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		evilly(key, within...)
		evilly(value, within...)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Interface:
		v.Set(reflect.ValueOf(evil))
	case reflect.Bool:
		v.SetBool(true)
	}
}

func evilAnswer[A any](h hostile) (a A, err error) {
	if h.err != nil || h.tame {
		return a, h.err
	}
	evilly(reflect.ValueOf(&a).Elem())
	return a, nil
}

func (h hostile) Publish(context.Context, operate.Publication) (operate.Published, error) {
	return evilAnswer[operate.Published](h)
}

func (h hostile) Get(context.Context, shard.DocID) (operate.Document, error) {
	return evilAnswer[operate.Document](h)
}

func (h hostile) Search(context.Context, operate.Search) (operate.Found, error) {
	return evilAnswer[operate.Found](h)
}

func (h hostile) Documents(context.Context, operate.DocumentFilter) (operate.DocumentPage, error) {
	return evilAnswer[operate.DocumentPage](h)
}

func (h hostile) Compose(context.Context, operate.Composition) (operate.Composed, error) {
	return evilAnswer[operate.Composed](h)
}

func (h hostile) Forms(context.Context) (operate.Forms, error) { return evilAnswer[operate.Forms](h) }

func (h hostile) Pause(context.Context, operate.PauseOrder) (operate.PauseResult, error) {
	return evilAnswer[operate.PauseResult](h)
}

func (h hostile) Resume(context.Context, operate.PauseOrder) (operate.PauseResult, error) {
	return evilAnswer[operate.PauseResult](h)
}

func (h hostile) Status(context.Context) (operate.Status, error) {
	return evilAnswer[operate.Status](h)
}

func (h hostile) Explain(context.Context, shard.DocID) (operate.Explanation, error) {
	x, err := evilAnswer[operate.Explanation](h)
	if !h.tame {
		x.Row = map[string]any{"last_error": evil, "flight": evil}
	}
	return x, err
}

func (h hostile) Letters(context.Context, operate.LetterFilter) ([]operate.Letter, error) {
	return evilAnswer[[]operate.Letter](h)
}

func (h hostile) LetterPage(context.Context, operate.LetterQuery) (operate.LetterPage, error) {
	return evilAnswer[operate.LetterPage](h)
}

func (h hostile) LetterGroups(context.Context, operate.LetterFilter) (operate.LetterGroups, error) {
	return evilAnswer[operate.LetterGroups](h)
}

func (h hostile) Letter(context.Context, string) (operate.Letter, error) {
	return evilAnswer[operate.Letter](h)
}

func (h hostile) Redrive(_ context.Context, o operate.LetterOrder) (operate.LetterResult, error) {
	return h.letters(o)
}

func (h hostile) Drop(_ context.Context, o operate.LetterOrder) (operate.LetterResult, error) {
	return h.letters(o)
}

// letters answers with the last step of a job, because a job without a last step would never end.
func (h hostile) letters(operate.LetterOrder) (operate.LetterResult, error) {
	res, err := evilAnswer[operate.LetterResult](h)
	res.Next = nil
	return res, err
}

func (h hostile) Cancel(context.Context, operate.Cancellation) (operate.Letter, error) {
	return evilAnswer[operate.Letter](h)
}

func (h hostile) Reset(context.Context, operate.ResetOrder) (operate.Resetted, error) {
	return evilAnswer[operate.Resetted](h)
}

func (h hostile) Reconcile(context.Context, operate.ReconcileOrder) (operate.ReconcilePage, error) {
	page, err := evilAnswer[operate.ReconcilePage](h)
	page.Next = nil
	return page, err
}

func (h hostile) Check(context.Context, operate.CheckOrder) (operate.Checked, error) {
	return evilAnswer[operate.Checked](h)
}

func (h hostile) Forget(context.Context, operate.ForgetOrder) (operate.ForgetStep, error) {
	step, err := evilAnswer[operate.ForgetStep](h)
	step.Next = nil // this is the last step
	return step, err
}

func (h hostile) Remove(context.Context, operate.RemoveOrder) (operate.Removed, error) {
	return evilAnswer[operate.Removed](h)
}

func (h hostile) Rebuild(context.Context, operate.RebuildOrder) (operate.RebuildStep, error) {
	return evilAnswer[operate.RebuildStep](h)
}

func (h hostile) Archived(context.Context, operate.ReplayOrder) (archive.Size, error) {
	if h.err != nil {
		return archive.Size{}, h.err
	}
	return archive.Size{Objects: 1, Messages: 1, Bytes: 1}, nil
}

func (h hostile) Backfill(context.Context, operate.BackfillOrder) (operate.BackfillStep, error) {
	step, err := evilAnswer[operate.BackfillStep](h)
	step.Next = "" // this is the last step
	return step, err
}

func (h hostile) Replay(context.Context, operate.ReplayOrder) (operate.ReplayStep, error) {
	step, err := evilAnswer[operate.ReplayStep](h)
	step.Next = "" // this is the last step
	return step, err
}

func (h hostile) TakeJob(_ context.Context, c job.Claim) (job.Lease, error) {
	lease, err := evilAnswer[job.Lease](h)
	lease.State.At = c.First
	return lease, err
}

func (h hostile) Object(context.Context, operate.ObjectOrder) (operate.ObjectResult, error) {
	return evilAnswer[operate.ObjectResult](h)
}

func (h hostile) Jobs(context.Context) ([]job.State, error) { return evilAnswer[[]job.State](h) }

func (h hostile) StopJob(context.Context, operate.JobOrder) error { return h.err }

func (h hostile) DropJob(context.Context, operate.JobOrder) error { return h.err }

func (h hostile) Origins(context.Context) ([]operate.Origin, error) {
	return evilAnswer[[]operate.Origin](h)
}

func (h hostile) Rebuilds(context.Context) ([]operate.RebuildProgress, error) {
	return evilAnswer[[]operate.RebuildProgress](h)
}

func (h hostile) SaveJob(context.Context, job.Lease) error { return nil }

func (h hostile) EndJob(context.Context, job.Lease) error { return nil }

func (h hostile) Rescue(context.Context, flight.ID) (operate.Rescued, error) {
	return evilAnswer[operate.Rescued](h)
}

// argsOf returns valid arguments for each command.
func argsOf(t *testing.T) map[string][]string {
	t.Helper()
	return map[string][]string{
		"get": {"content#a"}, "explain": {"content#a"}, "cancel": {"content#a"}, "dead show": {"id"}, "rescue": {"id"},
		"wait": {"content#a", "--version", "1", "--timeout", "1s"}, "dead redrive": {"--all"}, "dead drop": {"--all", "--yes"},
		"reset": {"content#a", "--to", "1", "--yes"}, "doctor": {"--timeout", "1s"}, "publish": {"-"},
		"pause": {"--all"}, "object": {"s3://b/k"}, "resume": {"--all"}, "forget": {"content#a", "--yes", "--patience", "0s"},
		"index check": {"content", "--patience", "0s"},
		"replay":      {"--from", "2h"},
		"rebuild":     {"content", "--dry-run"}, "backfill": {"content", "--sink", "s"}, "index repair": {"content", "--patience", "0s"},
		"jobs stop": {"id"}, "jobs drop": {"id"},
	}
}

func TestNoCommandPrintsControlCharacters(t *testing.T) {
	t.Parallel()
	args := argsOf(t)
	for _, h := range []hostile{{}, {err: errors.New(evil)}} {
		server := httptest.NewServer(operate.Handler(operatetest.API(operate.API{}, h)))
		t.Cleanup(server.Close)
		for _, c := range commands(tree()) {
			name := strings.TrimPrefix(c.CommandPath(), "lull ")
			if c.Annotations[alone] != "" || c.HasSubCommands() || name == "index install-template" || name == "resync" {
				continue
			}
			for _, output := range []string{"table", "json"} {
				line := slices.Concat(strings.Fields(name), args[name], []string{"--dev", server.URL, "-o", output})
				a := lull(t, put("a", "1", "{}"), line...)
				a.safe(t, strings.Join(line, " "))
				if a.out+a.errors == "" && c.Parent().Name() != "jobs" { // an order to a job has no answer
					t.Errorf("%v: printed nothing", line)
				}
				for dec := json.NewDecoder(strings.NewReader(a.out)); output == "json"; {
					var v any
					if err := dec.Decode(&v); err == nil {
						continue
					} else if !errors.Is(err, io.EOF) {
						t.Errorf("%v: %q is not JSON: %v", line, a.out, err)
					}
					break
				}
				if name == "publish" { // its error names the caller's own file
					continue
				}
				lull(t, evil, append(strings.Fields(name), "content#"+evil, "--dev", server.URL)...).safe(t, name+" evil")
			}
		}
	}
}

func TestDevPrintsNoControlCharactersOfAMessage(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	field := func(name, value string) string {
		fields := map[string]string{
			"type": `"doc.changed"`, "subject": `"a"`, "sequence": `"1"`, "data": "{}", "id": `"1"`,
		}
		fields[name] = value
		var all []string
		for name, value := range fields {
			all = append(all, `"`+name+`":`+value)
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	var lines []string
	for _, name := range []string{
		"type", "subject", "sequence", "collection", "time", "notbefore", "mode", "resyncrun", "dataref", "data",
		"specversion", "source",
	} {
		lines = append(lines, field(name, string(text)))
	}
	for _, attribute := range []string{"lull-source", "lull-group", "content_type", "event_type"} {
		line, err := json.Marshal(map[string]any{
			"body":       json.RawMessage(put("b", "1", "{}")),
			"attributes": map[string]any{attribute: evil},
		})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	s := settled(t, "--events", write(t, lines...), "--speed", "100", "-v")
	for _, line := range [][]string{
		{"dead", "list"},
		{"dead", "list", "-o", "json"},
		{"explain", "content#a"},
		{"get", "content#a"},
		{"status"},
		{"dead", "redrive", "--all", "--dry-run"},
		{"dead", "drop", "--all", "--yes"},
	} {
		s.ask(line...).safe(t, strings.Join(line, " "))
	}
	a := s.stopped()
	a.safe(t, "dev")
	if n := strings.Count(a.out, " DEAD "); n < 8 {
		t.Errorf("the output has %d dead letters, want one for each field: %s", n, a.out)
	}
}
