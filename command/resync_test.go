package command

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
)

// keeper is a stack that keeps what is published, and is down from some message on.
type keeper struct {
	sent []queue.Outgoing
	most int // messages that it takes, 0 for any number
	aws  func(context.Context) (aws.Config, error)
}

var errDown = errors.New("the stack is down")

func (d *keeper) api(t *testing.T) operate.API {
	t.Helper()
	cfg := config.Default()
	sources, err := source.New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &operate.Operator{
		Config: &cfg, Sources: sources, Clock: clock.System{},
		Publisher: func(_ context.Context, _ string, lane flight.Lane, out queue.Outgoing) error {
			if lane != flight.Bulk {
				t.Errorf("published to lane %s", lane)
			}
			if d.most > 0 && len(d.sent) == d.most {
				return errDown
			}
			d.sent = append(d.sent, out)
			return nil
		},
	}
}

// marks are the fields that resync sets in an event.
type marks struct {
	Subject, Sequence, Mode, Resyncrun, Collection string
	Data                                           json.RawMessage
}

func marked(t *testing.T, out queue.Outgoing) marks {
	t.Helper()
	return decode[marks](t, out.Body)
}

// many are lines of events.
func many(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = put("doc-"+strings.Repeat("x", i%3), "1", `{"n":1.10}`)
	}
	return lines
}

// resync runs one against the keeper.
func (d *keeper) resync(t *testing.T, from string, f resyncFlags) (resynced, string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &errs)
	a.target.output, a.aws = "json", d.aws
	f.rate = 1e6
	err := a.resync(t.Context(), d.api(t), from, f)
	var r resynced
	if out.Len() > 0 {
		r = decode[resynced](t, out.String())
	}
	return r, errs.String(), err
}

// refusedFor checks that nothing was read or changed, and that the error says why.
func refusedFor(t *testing.T, err error, says ...string) {
	t.Helper()
	var exit *exitError
	if !errors.As(err, &exit) || exit.code != exitUsage {
		t.Fatalf("%v, want a usage error that says %q", err, says)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%v, want %q in it", err, s)
		}
	}
}

func TestAResyncMarksItsEventsAndGoesOnWithTheSameRun(t *testing.T) {
	t.Parallel()
	file := write(t, append(append([]string{"", put("first", "7", `{"n":1.10,"big":12345678901234567890}`)},
		many(349)...), "", put("last", "1", "{}"))...)
	at := file + ".checkpoint"
	d := &keeper{most: 201}
	_, said, err := d.resync(t, file, resyncFlags{collection: "next"})
	if !errors.Is(err, errDown) || !strings.Contains(err.Error(), "goes on from "+at) || said != "" {
		t.Fatalf("error %v, said %q; want the stack's and what to do", err, said)
	}
	first := marked(t, d.sent[0])
	if first.Mode != "resync" || first.Collection != "next" || len(first.Resyncrun) != 26 ||
		string(first.Data) != `{"n":1.10,"big":12345678901234567890}` {
		t.Errorf("event %+v, want it marked and its data untouched", first)
	}
	if _, err := os.Stat(at); err != nil {
		t.Fatal(err)
	}

	again := &keeper{}
	r, _, err := again.resync(t, file, resyncFlags{collection: "next"})
	if err != nil || r.Run != first.Resyncrun || r.Before != 200 || r.Messages != 151 || len(again.sent) != 151 {
		t.Errorf("got %+v, error %v, %d sent; want the same run from message 201 on", r, err, len(again.sent))
	}
	if last := marked(t, again.sent[150]); last.Subject != "last" || last.Resyncrun != first.Resyncrun {
		t.Errorf("last %+v", last)
	}
	absent(t, at)
	if r, _, err := again.resync(t, file, resyncFlags{}); err != nil || r.Run == first.Resyncrun || r.Before != 0 {
		t.Errorf("after its end: %+v, error %v; want a new run", r, err)
	}
}

func TestAResyncTakesAFileThatBeginsWithABOM(t *testing.T) {
	t.Parallel()
	d := &keeper{}
	r, said, err := d.resync(t, write(t, "\ufeff"+put("first", "7", "{}"), put("second", "7", "{}")), resyncFlags{})
	if err != nil || r.Messages != 2 || marked(t, d.sent[0]).Subject != "first" {
		t.Errorf("got %+v, error %v, said %q; want both messages", r, err, said)
	}
}

// An export may be compressed. Its checkpoint counts what is in it.
func TestAResyncGoesOnInAFileWithGzip(t *testing.T) {
	t.Parallel()
	var packed strings.Builder
	z := gzip.NewWriter(&packed)
	_, err := io.WriteString(z, strings.Join(many(350), "\n"))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	file := write(t)
	save(t, file, packed.String())
	if _, _, err := (&keeper{most: 201}).resync(t, file, resyncFlags{}); !errors.Is(err, errDown) {
		t.Errorf("got %v, want it stopped after 200 messages", err)
	}
	if r, said, err := (&keeper{}).resync(t, file, resyncFlags{}); err != nil || r.Before != 200 || r.Messages != 150 {
		t.Errorf("got %+v, %v, said %q, want the other 150", r, err, said)
	}
}

// A group marks the messages that name no group themselves.
func TestAResyncSendsItsMessagesInAGroup(t *testing.T) {
	t.Parallel()
	own := `{"after_ms":0,"attributes":{"lull-group":{"type":"String","string":"tenant-b"}},"body":` +
		put("own", "1", "{}") + `}`
	d := &keeper{}
	if _, _, err := d.resync(t, write(t, put("first", "7", "{}"), own),
		resyncFlags{group: "tenant-a", source: "native"}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"tenant-a", "tenant-b"} {
		if got := queue.Group(d.sent[i].Attributes); got != want ||
			d.sent[i].Attributes[queue.AttrSource].String != "native" {
			t.Errorf("message %d is of group %q, attributes %+v; want %q, and its source", i, got, d.sent[i].Attributes,
				want)
		}
	}
	for _, bad := range []string{"two words", strings.Repeat("x", 129), "größe"} {
		lull(t, "", "publish", "--group", bad).want(t, bad, exitUsage, "--group")
	}
}

// A run that dies before its first answer has begun already: beginning again would be a second run,
// which accepts everything once more.
func TestARunBeginsOnce(t *testing.T) {
	t.Parallel()
	file := write(t, many(3)...)
	d := &keeper{most: 1}
	if _, _, err := d.resync(t, file, resyncFlags{}); !errors.Is(err, errDown) {
		t.Fatal(err)
	}
	again := &keeper{}
	if r, _, err := again.resync(t, file, resyncFlags{}); err != nil || r.Run != marked(t, d.sent[0]).Resyncrun ||
		r.Messages != 3 {
		t.Errorf("got %+v, error %v; want the run that had begun", r, err)
	}
}

// change is a text in a file, and what it becomes.
type change struct{ from, to string }

func (c change) in(t *testing.T, path string) {
	t.Helper()
	save(t, path, strings.Replace(contents(t, path), c.from, c.to, 1))
}

// interrupted is a resync that stopped after 200 messages.
func interrupted(t *testing.T) (file string) {
	t.Helper()
	file = write(t, many(350)...)
	if _, _, err := (&keeper{most: 201}).resync(t, file, resyncFlags{}); !errors.Is(err, errDown) {
		t.Fatal(err)
	}
	return file
}

func TestACheckpointThatDoesNotFitChangesNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		checkpoint, file change
		flags            resyncFlags
		says             string
	}{
		{name: "broken", checkpoint: change{`{"input":`, `{"input" `}, says: "is broken"},
		{name: "without a run", checkpoint: change{`"run":`, `"walk":`}, says: "is broken"},
		{name: "below zero", checkpoint: change{`"sent":200`, `"sent":-200`}, says: "is broken"},
		{name: "of another count", checkpoint: change{`"sent":200`, `"sent":100`}, says: "of another input"},
		{name: "of another file", file: change{`1.10`, `1.20`}, says: "of another input"},
		{name: "of a longer file", file: change{strings.Join(many(340), "\n"), ""}, says: "of another input"},
		{name: "of another run", flags: resyncFlags{run: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, says: "--run"},
		{name: "of another collection", flags: resyncFlags{collection: "next"}, says: "--collection none, not next"},
		{name: "of another source", flags: resyncFlags{source: "other"}, says: "--source none, not other"},
		{
			name: "of another stack", checkpoint: change{`"sent"`, `"stack":"http://elsewhere","sent"`},
			says: "is of the stack http://elsewhere",
		},
		{name: "that is a folder", flags: resyncFlags{checkpoint: t.TempDir()}, says: "read the checkpoint"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := interrupted(t)
			at := file + ".checkpoint"
			tt.checkpoint.in(t, at)
			tt.file.in(t, file)
			before := contents(t, at)
			d := &keeper{}
			_, _, err := d.resync(t, file, tt.flags)
			refusedFor(t, err, tt.says)
			if after := contents(t, at); len(d.sent) != 0 || after != before {
				t.Errorf("%d messages were sent, the checkpoint is %s, was %s", len(d.sent), after, before)
			}
		})
	}
	t.Run("a file that grew goes on", func(t *testing.T) {
		t.Parallel()
		file := interrupted(t)
		more, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = more.WriteString(put("more", "1", "{}") + "\n")
		if err := errors.Join(err, more.Close()); err != nil {
			t.Fatal(err)
		}
		d := &keeper{}
		if r, _, err := d.resync(t, file, resyncFlags{}); err != nil || r.Messages != 151 {
			t.Errorf("got %+v, error %v; want the 150 that remain and the one more", r, err)
		}
	})
}

func TestResyncRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		from string
		f    resyncFlags
		says string
	}{
		"a missing file": {"missing.ndjson", resyncFlags{}, "missing.ndjson"},
		"a folder":       {t.TempDir(), resyncFlags{}, "is a folder"},
		"no object":      {"s3://bucket", resyncFlags{}, "s3://BUCKET/KEY"},
		"no bucket":      {"s3:///key", resyncFlags{}, "s3://BUCKET/KEY"},
		"no run":         {write(t, many(1)...), resyncFlags{run: "x"}, "--run"},
	} {
		d := &keeper{}
		_, _, err := d.resync(t, tt.from, tt.f)
		if refusedFor(t, err, tt.says); len(d.sent) > 0 {
			t.Errorf("%s: %d messages were sent", name, len(d.sent))
		}
	}
	d := &keeper{}
	file := write(t, put("a", "1", "{}"), `{"after_ms":-1}`)
	if _, _, err := d.resync(t, file, resyncFlags{}); err == nil || !strings.Contains(err.Error(), "after_ms") ||
		len(d.sent) != 1 {
		t.Errorf("a broken line: %v, %d sent", err, len(d.sent))
	}
}

func TestResyncReadsAnObjectInS3(t *testing.T) {
	t.Parallel()
	body := strings.Join(many(120), "\n")
	cfg := awstest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/exports/2026/all.ndjson":
			_, _ = w.Write([]byte(body))
		case "/exports/secret.ndjson":
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`<Error><Code>AccessDenied</Code><Message>not yours</Message></Error>`))
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`<Error><Code>NoSuchKey</Code></Error>`))
		}
	}))
	at := filepath.Join(t.TempDir(), "checkpoint")
	d := &keeper{aws: func(context.Context) (aws.Config, error) { return cfg, nil }}
	r, said, err := d.resync(t, "s3://exports/2026/all.ndjson", resyncFlags{checkpoint: at})
	if err != nil || r.Messages != 120 || len(d.sent) != 120 || marked(t, d.sent[119]).Mode != "resync" {
		t.Errorf("%+v, %d sent, error %v, said %q", r, len(d.sent), err, said)
	}
	d.sent = nil
	for from, says := range map[string]string{
		"s3://exports/secret.ndjson": "AccessDenied",
		"s3://exports/nothing":       "NoSuchKey",
	} {
		_, _, err := d.resync(t, from, resyncFlags{checkpoint: at})
		if refusedFor(t, err, says, from); len(d.sent) > 0 {
			t.Errorf("%s: %d messages were sent", from, len(d.sent))
		}
	}
	absent(t, at)
	d.aws = func(context.Context) (aws.Config, error) { return aws.Config{}, errors.New("no profile") }
	_, _, err = d.resync(t, "s3://exports/x", resyncFlags{})
	refusedFor(t, err, "no profile")
}

func TestAResyncIsAcceptedOncePerRun(t *testing.T) {
	t.Parallel()
	s := settled(t, "--events", write(t, put("same", "2", `{"t":"old"}`), put("newer", "5", "{}")), "--speed", "100")
	const run = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	file := write(t, put("same", "2", `{"t":"again"}`), put("newer", "4", "{}"), "not JSON", put("missing", "1", "{}"))
	s.ask("resync", file, "--collection", "No").want(t, "a bad collection", exitUsage, "--collection")
	absent(t, file+".checkpoint")
	a := s.ask("resync", file, "--run", run, "--rate", "5000")
	a.want(t, "resync", exitRefused, "refused: message 3:")
	if strings.Contains(a.errors, "\r") || !strings.Contains(a.out, "3 messages sent in resync run "+run+
		", 1 refused") {
		t.Errorf("said %q, and %q; want no bar where nobody looks", a.out, a.errors)
	}
	s.ask("wait", "content#missing", "--version", "1").want(t, "wait", exitOK)
	s.until("again", "get", "content#same") // the equal version is written a moment later, or was already
	s.ask("get", "content#newer").want(t, "a newer version", exitOK, "version    5")
	s.ask("resync", write(t, put("same", "2", `{"t":"again"}`)), "--run", run)
	s.publish(put("end", "1", "{}"))
	s.ask("wait", "content#end", "--version", "1").want(t, "wait", exitOK)
	if got := s.stopped(); !strings.Contains(got.out, "1 stale, 1 duplicates") {
		t.Errorf("the same run again: %s", got.out)
	}
}
