// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
)

// keeper is a stack that keeps the published messages. After some messages it is down.
type keeper struct {
	shards *memory.Shards // the table of an earlier program, nil for a new table
	sent   []queue.Outgoing
	most   int // how many messages it accepts before it is down, 0 for any number
	aws    func(context.Context) (aws.Config, error)
}

var errDown = errors.New("the stack is down")

func (d *keeper) api(t *testing.T) operate.API {
	t.Helper()
	cfg := config.Default()
	sources, err := source.New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	if d.shards == nil {
		d.shards = memory.NewShards()
	}
	return (&operate.Operator{
		Config: &cfg, Sources: sources, Clock: clock.System{}, Shards: d.shards,
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
	}).API()
}

// marks has the fields of an event, some of which a resync sets.
type marks struct {
	Subject, Sequence, Mode, Resyncrun, Collection string
	Data                                           json.RawMessage
}

func marked(t *testing.T, out queue.Outgoing) marks {
	t.Helper()
	return decode[marks](t, out.Body)
}

// many returns n lines of events.
func many(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = put("doc-"+strings.Repeat("x", i%3), "1", `{"n":1.10}`)
	}
	return lines
}

// resync runs `lull resync` against the keeper.
func (d *keeper) resync(t *testing.T, from string, o operate.ResyncOrder) (resynced, string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &errs)
	a.streams.output = "json"
	err := failed(runResync(t.Context(), &a.streams, d.aws, d.api(t), from, o, 1e6))
	var r resynced
	if out.Len() > 0 {
		r = decode[resynced](t, out.String())
	}
	return r, errs.String(), err
}

// stopped runs a resync until the stack is down.
func (d *keeper) stopped(t *testing.T, file string, o operate.ResyncOrder) {
	t.Helper()
	if _, _, err := d.resync(t, file, o); !errors.Is(err, errDown) {
		t.Fatalf("got %v, want the stack's error", err)
	}
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

// A resync that failed continues on another machine, with its run.
func TestAResyncMarksItsEventsAndContinuesWithTheSameRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lines := append(append([]string{"", put("first", "7", `{"n":1.10,"big":12345678901234567890}`)},
			many(349)...), "", put("last", "1", "{}"))
		file, next := write(t, lines...), operate.ResyncOrder{Collection: "next"}
		d := &keeper{most: 201}
		_, said, err := d.resync(t, file, next)
		if !errors.Is(err, errDown) || !strings.Contains(err.Error(), "the same command continues") || said != "" {
			t.Fatalf("error %v, said %q; want the stack's and what to do", err, said)
		}
		first := marked(t, d.sent[0])
		if first.Mode != "resync" || first.Collection != "next" || len(first.Resyncrun) != 26 ||
			string(first.Data) != `{"n":1.10,"big":12345678901234567890}` {
			t.Errorf("event %+v, want it marked and its data untouched", first)
		}
		elsewhere := filepath.Join(t.TempDir(), filepath.Base(file))
		save(t, elsewhere, contents(t, file))
		again := &keeper{shards: d.shards}
		r, said, err := again.resync(t, elsewhere, next)
		if err != nil || r != (resynced{first.Resyncrun, 351, 351, 0}) || len(again.sent) != 151 ||
			!strings.Contains(said, "continues after 200") {
			t.Errorf("got %+v, error %v, %d sent, said %q; want the same run from message 201 on", r, err, len(again.sent), said)
		}
		if last := marked(t, again.sent[150]); last.Subject != "last" || last.Resyncrun != first.Resyncrun {
			t.Errorf("last %+v", last)
		}
		if r, _, err := again.resync(t, file, operate.ResyncOrder{}); err != nil || r.Run == first.Resyncrun ||
			r.Messages != 351 {
			t.Errorf("after its end: %+v, error %v; want a new run", r, err)
		}
	})
}

func TestAResyncTakesAFileThatBeginsWithABOM(t *testing.T) {
	t.Parallel()
	d := &keeper{}
	r, said, err := d.resync(t, write(t, "\ufeff"+put("first", "7", "{}"), put("second", "7", "{}")), operate.ResyncOrder{})
	if err != nil || r.Messages != 2 || marked(t, d.sent[0]).Subject != "first" {
		t.Errorf("got %+v, error %v, said %q; want both messages", r, err, said)
	}
}

// An export may be compressed. The job counts its decompressed bytes.
func TestAResyncContinuesInAFileWithGzip(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var packed strings.Builder
		z := gzip.NewWriter(&packed)
		_, err := io.WriteString(z, strings.Join(many(350), "\n"))
		if err := errors.Join(err, z.Close()); err != nil {
			t.Fatal(err)
		}
		file, d := write(t), &keeper{most: 201}
		save(t, file, packed.String())
		d.stopped(t, file, operate.ResyncOrder{})
		again := &keeper{shards: d.shards}
		if r, said, err := again.resync(t, file, operate.ResyncOrder{}); err != nil || r.Messages != 350 ||
			len(again.sent) != 150 {
			t.Errorf("got %+v, %v, said %q, want the other 150", r, err, said)
		}
	})
}

// --group names the group of the messages that name no group themselves.
func TestAResyncSendsItsMessagesInAGroup(t *testing.T) {
	t.Parallel()
	own := `{"after_ms":0,"attributes":{"lull-group":{"type":"String","string":"tenant-b"}},"body":` +
		put("own", "1", "{}") + `}`
	d := &keeper{}
	if _, _, err := d.resync(t, write(t, put("first", "7", "{}"), own),
		operate.ResyncOrder{Group: "tenant-a", Source: "native"}); err != nil {
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

// A resync is killed before its first answer. The next program must continue its run, because a
// second run would accept every event once more.
func TestARunBeginsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file, d := write(t, many(3)...), &keeper{most: 1}
		d.stopped(t, file, operate.ResyncOrder{})
		again := &keeper{shards: d.shards}
		if r, _, err := again.resync(t, file, operate.ResyncOrder{}); err != nil ||
			r.Run != marked(t, d.sent[0]).Resyncrun || r.Messages != 3 {
			t.Errorf("got %+v, error %v; want the run that had begun", r, err)
		}
	})
}

// change replaces a text of a file by another text.
type change struct{ from, to string }

func (c change) in(t *testing.T, path string) {
	t.Helper()
	save(t, path, strings.Replace(contents(t, path), c.from, c.to, 1))
}

// A resync was interrupted after 200 messages. It continues only with the same input and the same
// flags.
func TestAResyncContinuesWithNothingElse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file  change
		order operate.ResyncOrder
		says  string
	}{
		"another file":       {file: change{`1.10`, `1.20`}, says: "does not begin with the bytes"},
		"a shorter file":     {file: change{strings.Join(many(340), "\n"), ""}, says: "does not begin with the bytes"},
		"another run":        {order: operate.ResyncOrder{Run: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, says: "other arguments"},
		"another collection": {order: operate.ResyncOrder{Collection: "next"}, says: "other arguments"},
		"another source":     {order: operate.ResyncOrder{Source: "other"}, says: "other arguments"},
	} {
		synctest.Test(t, func(t *testing.T) {
			file, d := write(t, many(350)...), &keeper{most: 201}
			d.stopped(t, file, operate.ResyncOrder{})
			same := contents(t, file)
			tt.file.in(t, file)
			again := &keeper{shards: d.shards}
			_, _, err := again.resync(t, file, tt.order)
			if refusedFor(t, err, tt.says); len(again.sent) != 0 {
				t.Errorf("%s: %d messages were sent", name, len(again.sent))
			}
			save(t, file, same)
			if r, _, err := again.resync(t, file, operate.ResyncOrder{}); err != nil || r.Messages != 350 ||
				len(again.sent) != 150 {
				t.Errorf("%s: then the right command got %+v, %v, and sent %d", name, r, err, len(again.sent))
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // a file that grew
		file, d := write(t, many(350)...), &keeper{most: 201}
		d.stopped(t, file, operate.ResyncOrder{})
		save(t, file, contents(t, file)+"\n"+put("more", "1", "{}")+"\n")
		again := &keeper{shards: d.shards}
		if r, _, err := again.resync(t, file, operate.ResyncOrder{}); err != nil || len(again.sent) != 151 {
			t.Errorf("got %+v, error %v; want the 150 that remain and the one more", r, err)
		}
	})
}

// The messages before a broken line are sent. After the line is fixed, the same command continues
// with this line, at any place in its batch.
func TestAResyncContinuesAtALineThatWasBroken(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 99, 100, 150, 200} {
		synctest.Test(t, func(t *testing.T) {
			lines := slices.Concat(many(n), []string{"", `{"after_ms":-1}`}, many(50))
			file, d := write(t, lines...), &keeper{}
			_, _, err := d.resync(t, file, operate.ResyncOrder{})
			if refusedFor(t, err, "after_ms", fmt.Sprintf("line %d", n+2)); len(d.sent) != n {
				t.Fatalf("%d messages were sent before line %d", len(d.sent), n+2)
			}
			change{`{"after_ms":-1}`, put("mended", "1", "{}")}.in(t, file)
			r, _, err := d.resync(t, file, operate.ResyncOrder{})
			if err != nil || r.Messages != n+51 || len(d.sent) != n+51 || marked(t, d.sent[n]).Subject != "mended" {
				t.Errorf("line %d: %+v, %v, %d sent", n+2, r, err, len(d.sent))
			}
		})
	}
}

func TestResyncRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ from, says string }{
		"a missing file": {"missing.ndjson", "missing.ndjson"},
		"a folder":       {t.TempDir(), "is a folder"},
		"no object":      {"s3://bucket", "s3://BUCKET/KEY"},
		"no bucket":      {"s3:///key", "s3://BUCKET/KEY"},
	} {
		d := &keeper{}
		_, _, err := d.resync(t, tt.from, operate.ResyncOrder{})
		if refusedFor(t, err, tt.says); len(d.sent) > 0 {
			t.Errorf("%s: %d messages were sent", name, len(d.sent))
		}
	}
	lull(t, "", "resync", write(t, many(1)...), "--run", "x").want(t, "no run", exitUsage, "--run")
}

func TestResyncReadsAnObjectInS3(t *testing.T) {
	t.Parallel()
	body := strings.Join(many(12_000), "\n") // it outlives each step
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
	d := &keeper{aws: func(context.Context) (aws.Config, error) { return cfg, nil }}
	r, said, err := d.resync(t, "s3://exports/2026/all.ndjson", operate.ResyncOrder{})
	if err != nil || r.Messages != 12_000 || len(d.sent) != 12_000 || marked(t, d.sent[119]).Mode != "resync" {
		t.Errorf("%+v, %d sent, error %v, said %q", r, len(d.sent), err, said)
	}
	d.sent = nil
	for from, says := range map[string]string{
		"s3://exports/secret.ndjson": "AccessDenied",
		"s3://exports/nothing":       "NoSuchKey",
	} {
		_, _, err := d.resync(t, from, operate.ResyncOrder{})
		if refusedFor(t, err, says, from); len(d.sent) > 0 {
			t.Errorf("%s: %d messages were sent", from, len(d.sent))
		}
	}
	d.aws = func(context.Context) (aws.Config, error) { return aws.Config{}, errors.New("no profile") }
	_, _, err = d.resync(t, "s3://exports/x", operate.ResyncOrder{})
	refusedFor(t, err, "no profile")
}

func TestAResyncIsAcceptedOncePerRun(t *testing.T) {
	t.Parallel()
	s := settled(t, "--events", write(t, put("same", "2", `{"t":"old"}`), put("newer", "5", "{}")), "--speed", "100")
	const run = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	file := write(t, put("same", "2", `{"t":"again"}`), put("newer", "4", "{}"), "not JSON", put("missing", "1", "{}"))
	s.ask("resync", file, "--collection", "No").want(t, "a bad collection", exitUsage, "--collection")
	a := s.ask("resync", file, "--run", run, "--rate", "5000")
	alarming(t, exitRefused, a, "refused: message 3:")
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
