// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/ledger"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/datafolder"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// life is a data folder and a sink that several runs of a process use.
type life struct {
	dir    string
	sink   *memorysink.Sink
	killed bool // the process does not save its state at the end
}

// open returns an engine for a run. The caller closes its folder.
func (l life) open(t *testing.T, o Options) *Engine {
	t.Helper()
	cfg := config.Default()
	cfg.Sinks = map[string]config.Sink{"search": {Kind: "memory"}}
	cfg.Complete()
	var err error
	if o.Folder, err = OpenFolder(l.dir); err != nil {
		t.Fatal(err)
	}
	o.Config, o.Clock, o.Sinks = &cfg, clock.System{}, map[string]sink.Sink{"search": l.sink}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// live runs an engine until all messages are done, and returns the report. The method calls check
// with the running engine.
func (l life) live(t *testing.T, messages []feed.Timed, check func(e *Engine)) ledger.Report {
	t.Helper()
	e := l.open(t, Options{})
	defer e.folder.Close()
	if err := e.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e.Start(ctx)
	if err := e.Play(ctx, &slice{messages}); err != nil {
		t.Fatal(err)
	}
	if err := e.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	if check != nil {
		check(e)
	}
	cancel()
	e.Stop()
	r, err := e.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	if !l.killed {
		if e.Save(); e.Trouble() != nil {
			err := e.Trouble()
			t.Fatal(err)
		}
	}
	return r
}

// lives runs a story with several runs on one data folder.
func lives(t *testing.T, set memorysink.Settings, story func(t *testing.T, l life)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set.Versions = true
		story(t, life{dir: t.TempDir(), sink: memorysink.New(clock.System{}, set)})
	})
}

// redriven redrives all dead letters several times. After each time, the function waits until all
// messages are done.
func redriven(t *testing.T, e *Engine, times int) {
	t.Helper()
	for range times {
		// REJECT sets the end of the lease to its own time, and until that time has passed, the
		// dead letter is busy
		time.Sleep(time.Second)
		if _, err := e.Operator(nil).API().Redrive(t.Context(), operate.LetterOrder{All: true, By: "ann"}); err != nil {
			t.Error(err)
		}
		if err := e.Settle(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// letPass lets a time pass, and waits until all messages that are due are done.
func letPass(t *testing.T, e *Engine, d time.Duration) {
	t.Helper()
	time.Sleep(d)
	synctest.Wait()
	if err := e.Settle(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheNextRunRefusesWhatTheLastOneMadeOld(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		name := "ended"
		if killed {
			name = "killed"
		}
		t.Run(name, func(t *testing.T) {
			lives(t, memorysink.Settings{ForgetAfter: time.Minute}, func(t *testing.T, l life) {
				l.killed = killed
				l.live(t, []feed.Timed{put(0, "a", 5), put(0, "gone", 5), del(time.Minute, "gone", 6)}, nil)
				time.Sleep(time.Hour)
				r := l.live(t, []feed.Timed{
					put(0, "a", 4), put(0, "a", 5), put(0, "gone", 5), del(0, "gone", 6),
					put(0, "b", 1),
				}, nil)
				if r.Stale != 2 || r.Duplicates != 2 || r.Written != 1 || r.Deleted != 0 {
					t.Errorf("the second run: %+v", r)
				}
				r = l.live(t, []feed.Timed{put(0, "a", 6), put(0, "gone", 7)}, nil)
				if r.Written != 2 {
					t.Errorf("the third run: %+v", r)
				}
			})
		})
	}
}

func TestDeadLettersAndScheduledEventsGoOnInTheNextRun(t *testing.T) {
	lives(t, memorysink.Settings{}, func(t *testing.T, l life) {
		later := put(0, "later", 1)
		later.Body = strings.Replace(later.Body, `"data"`,
			`"notbefore":"`+time.Now().Add(2*time.Hour).Format(time.RFC3339)+`","data"`, 1)
		poison := put(0, "poison", 1, `[]`)
		r := l.live(t, []feed.Timed{later, poison, put(0, "sick", 1)}, nil)
		if r.Scheduled != 1 || r.Dead != 1 || len(r.DeadLetters) != 1 {
			t.Fatalf("the first run: %+v", r)
		}
		r = l.live(t, nil, nil)
		if r.Events != 1 || r.Scheduled != 1 || len(r.DeadLetters) != 1 ||
			r.DeadLetters[0].Reason != string(deadletter.Contract) {
			t.Errorf("the second run: %+v", r)
		}
		r = l.live(t, nil, func(e *Engine) { letPass(t, e, 3*time.Hour) })
		if r.Events != 1 || r.Scheduled != 0 || r.Written != 1 {
			t.Errorf("the third run: %+v", r)
		}
		if got, _, err := l.sink.Get(t.Context(), doc("later")); err != nil || got.Version != "1" {
			t.Errorf("the scheduled event: %+v, error %v", got, err)
		}
	})
}

func TestScheduledEventThatWaitsInTheQueueGoesOnInTheNextRun(t *testing.T) {
	lives(t, memorysink.Settings{}, func(t *testing.T, l life) {
		soon := time.Now().Add(10 * time.Minute)
		r := l.live(t, []feed.Timed{
			notBefore(soon, put(0, "a", 1)), notBefore(soon, del(0, "b", 2)), put(0, "b", 1),
			notBefore(soon.Add(9*time.Minute), put(0, "c", 1)),
		}, func(e *Engine) {
			time.Sleep(6 * time.Minute)
			synctest.Wait()
			if n := e.Schedule.Len(); n != 0 {
				t.Fatalf(
					"%d events are stored, want none: all wait in the queue, two from the beginning, one since prune "+
						"came by", n)
			}
		})
		if r.Scheduled != 3 || r.Written != 1 {
			t.Fatalf("the first run: %+v", r)
		}
		r = l.live(t, nil, func(e *Engine) { letPass(t, e, 20*time.Minute) })
		if r.Events != 3 || r.Scheduled != 0 || r.Written != 2 || r.Deleted != 1 {
			t.Errorf("the second run: %+v", r)
		}
		if r = l.live(t, nil, nil); r.Events != 0 {
			t.Errorf("the third run: %+v, want nothing left of the first", r)
		}
	})
}

func TestADeadLetterThatIsNotUTF8GoesOnByteForByteAndForNobodyElseToRead(t *testing.T) {
	lives(t, memorysink.Settings{}, func(t *testing.T, l life) {
		const body = "{\"title\":\"x\xff\xfe\tü\"}"
		var bad feed.Timed
		bad.Body = body
		l.live(t, []feed.Timed{bad}, nil)
		for range 2 {
			l.live(t, nil, func(e *Engine) {
				all, _, err := e.Letters.List(t.Context(), deadletter.Filter{}, "", 10)
				if err != nil || len(all) != 1 {
					t.Fatalf("%d dead letters, error %v, want 1", len(all), err)
				}
				if got, _, err := e.Letters.Get(t.Context(), all[0].ID); err != nil || got.Body != body {
					t.Errorf("got %q, error %v, want %q", got.Body, err, body)
				}
			})
		}
		info, err := os.Stat(filepath.Join(l.dir, stateFile))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, error %v, want a file that only its owner reads", info.Mode(), err)
		}
	})
}

// If a message has many dead letters, the data folder contains the message once.
func TestDeadLettersOfOneMessageAreSavedWithIt(t *testing.T) {
	lives(t, memorysink.Settings{}, func(t *testing.T, l life) {
		const n = 20
		key, err := shard.ParseOrderKey("e010,i0512345,-,01763654400123456,9f86d081884c7d65")
		if err != nil {
			t.Fatal(err)
		}
		m := queue.Message{
			ID: "m", Body: strings.Repeat("a long message ", 1000), Sent: time.Now(),
			Attributes: map[string]queue.Attribute{"x": queue.Text("y")},
		}
		l.live(t, nil, func(e *Engine) {
			for i := range n {
				doc := shard.DocID(fmt.Sprint("content#", i))
				dead := deadletter.New(m, deadletter.RejectedBySink, "", doc, key, i, time.Now())
				if _, err := e.Letters.Park(t.Context(), dead); err != nil {
					t.Fatal(err)
				}
			}
		})
		for range 2 {
			info, err := os.Stat(filepath.Join(l.dir, stateFile))
			if err != nil || info.Size() > int64(n*len(m.Body)/2) {
				t.Fatalf("%d dead letters of a message of %d bytes take %d, error %v", n, len(m.Body), info.Size(), err)
			}
			l.live(t, nil, func(e *Engine) {
				all, _, err := e.Letters.List(t.Context(), deadletter.Filter{}, "", 100)
				if err != nil || len(all) != n {
					t.Fatalf("%d dead letters, error %v, want %d", len(all), err, n)
				}
				for _, f := range all {
					got, _, err := e.Letters.Get(t.Context(), f.ID)
					if err != nil || got.Body != m.Body || got.Attributes["x"].String != "y" {
						t.Errorf("got %d bytes %v, error %v", len(got.Body), got.Attributes, err)
					}
				}
			})
		}
	})
}

func TestADeadLetterThatIsSentAgainIsCountedOnce(t *testing.T) {
	rejected := memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Rejected, Status: 400, Reason: "mapping"}}
	for name, c := range map[string]struct {
		answers                []memorysink.Answer // the answers of the sink for document a
		body                   string
		first, second          int // redrives in the first run, and in the second
		events, written, dead  int // in the last run
		rejected, stillWaiting int
	}{
		"of an earlier run: an event of this one": {[]memorysink.Answer{rejected}, `{}`, 0, 1, 1, 1, 0, 0, 0},
		"that dies again: dead once":              {[]memorysink.Answer{rejected, rejected}, `{}`, 1, 0, 1, 0, 1, 0, 1},
		"that receive refuses: rejected once":     {nil, `[]`, 3, 0, 1, 0, 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			lives(t, memorysink.Settings{}, func(t *testing.T, l life) {
				l.sink.Script(doc("a"), c.answers...)
				r := l.live(t, []feed.Timed{put(0, "a", 1, c.body)}, func(e *Engine) { redriven(t, e, c.first) })
				if c.second > 0 {
					r = l.live(t, nil, func(e *Engine) { redriven(t, e, c.second) })
				}
				if r.Events != c.events || r.Written != c.written || r.Dead != c.dead || r.Rejected != c.rejected ||
					r.Duplicates != 0 || len(r.DeadLetters) != c.stillWaiting {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// If the clock went back, the start of a pause and the last run of prune would be in the future.
func TestTheClockOfTheNextRunDoesNotGoBackBehindTheLastRunsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := life{dir: t.TempDir(), sink: memorysink.New(clock.System{}, memorysink.Settings{})}
		var end time.Time
		l.live(t, []feed.Timed{put(0, "a", 1)}, func(*Engine) {
			time.Sleep(5 * time.Hour)
			end = time.Now()
		})
		f, err := OpenFolder(l.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.From().Before(end) {
			t.Errorf("the clock goes on from %s, the run ended at %s", f.From(), end)
		}
	})
}

// load opens a data folder in a new engine.
func load(t *testing.T, dir string) error {
	t.Helper()
	e := life{dir: dir, sink: memorysink.New(clock.System{}, memorysink.Settings{})}.open(t, Options{})
	defer e.folder.Close()
	return e.Load(t.Context())
}

func TestABrokenDataFolderIsSaidToBeBroken(t *testing.T) {
	t.Parallel()
	for _, file := range []string{rowsFile, lettersFile, scheduledFile} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, file), []byte("{\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := load(t, dir); err == nil || !strings.Contains(err.Error(), file+" line 1") {
				t.Errorf("got %v, want the file and the line", err)
			}
		})
	}
}

func TestHalfANoteOfADeleteOfAnEarlierBuildIsPassedOver(t *testing.T) {
	t.Parallel()
	if err := load(t, writeFiles(t, map[string]string{deletesFile: `{"doc":"content#a","ke`})); err != nil {
		t.Error(err)
	}
}

// An earlier build wrote its state to four files.
func TestADataFolderOfAnEarlierBuildIsTakenOver(t *testing.T) {
	lives(t, memorysink.Settings{}, func(t *testing.T, l life) {
		if err := os.CopyFS(l.dir, os.DirFS("testdata/earlier")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			r := l.live(t, []feed.Timed{put(0, "a", 4), put(0, "gone", 5)}, func(e *Engine) {
				all, _, err := e.Letters.List(t.Context(), deadletter.Filter{}, "", 10)
				if err != nil || len(all) != 1 {
					t.Fatalf("%d dead letters, error %v, want 1", len(all), err)
				}
				if d, _, err := e.Letters.Get(t.Context(), all[0].ID); err != nil ||
					!strings.Contains(d.Body, "poison") {
					t.Errorf("dead letter %+v, error %v", d, err)
				}
			})
			if r.Stale != 2 || r.Scheduled != 1 {
				t.Errorf("%+v, want both older versions refused and the scheduled event", r)
			}
		}
		if left, err := filepath.Glob(filepath.Join(l.dir, "*.ndjson")); err != nil || len(left) > 0 {
			t.Errorf("%v, error %v: want the earlier files gone", left, err)
		}
	})
}

func TestAFolderInUseIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var used *datafolder.InUseError
	if _, err := OpenFolder(dir); !errors.As(err, &used) {
		t.Errorf("got %v, want that it is in use", err)
	}
}

func TestADataFolderIsClaimedForItsSinks(t *testing.T) {
	t.Parallel()
	stack := func(sinks map[string]string, content ...string) *config.Config {
		c := &config.Config{DefaultSink: "search", Sinks: map[string]config.Sink{}}
		for name, url := range sinks {
			c.Sinks[name] = config.Sink{Kind: "opensearch", URL: url}
		}
		if len(content) > 0 {
			c.Collections = map[string]config.Collection{"content": {Sinks: content}}
		}
		return c
	}
	one := map[string]string{"search": "http://a", "other": "http://b"}
	added := map[string]string{"search": "http://a", "other": "http://b", "third": "http://c"}
	dir := filepath.Join(t.TempDir(), "new", "folder")
	for _, c := range []struct {
		name    string
		cfg     *config.Config
		refused string // a text that the error must contain; empty if the folder is accepted
		failed  bool   // another part could not be opened, so that keep is not called
	}{
		{"a new folder", stack(one, "search", "other"), "", false},
		{"the same", stack(one, "search", "other"), "", false},
		{"another address", stack(map[string]string{"search": "http://a", "other": "http://9"}), "http://9", false},
		{"another order", stack(one, "other", "search"), "content", false},
		{"another first sink by default", &config.Config{Sinks: stack(one).Sinks, DefaultSink: "other"}, "content", false},
		{"a sink added, which does not answer", stack(added, "search", "third"), "", true},
		{"nothing added", stack(one, "search", "other"), "", false},
		{"a sink added", stack(added, "search", "other", "third"), "", false},
		{"a sink less", stack(one, "search", "other"), "third", false},
		{"the same first sink, by default", stack(added), "", false},
	} {
		keep, err := ClaimFolder(dir, c.cfg)
		if err == nil && !c.failed {
			err = keep()
		}
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s: %v, want a refusal that names %q", c.name, err, c.refused)
		}
	}
	sinks := stack(one)
	for name, files := range map[string]map[string]string{
		"somebody's": {"thesis.txt": "x"}, "a Bleve index": {datafolder.MarkerName: `{"holds":"lull search index","schema":1}`},
		"no JSON":        {datafolder.MarkerName: "x"},
		"a newer lull's": {datafolder.MarkerName: `{"holds":"lull dev state","schema":2}`},
	} {
		dir := writeFiles(t, files)
		if _, err := ClaimFolder(dir, sinks); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want a refusal that names the folder", name, err)
		}
		for file, text := range files {
			if b, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(b) != text {
				t.Errorf("%s was changed to %q, error %v", file, b, err)
			}
		}
	}
	file := filepath.Join(writeFiles(t, map[string]string{"file": ""}), "file")
	if _, err := ClaimFolder(file, sinks); err == nil {
		t.Error("a file was claimed")
	}
	was := `{"holds":"lull dev state","schema":1,"sinks":{"search":"opensearch http://a","other":"opensearch http://b"}}`
	if _, err := ClaimFolder(writeFiles(t, map[string]string{datafolder.MarkerName: was}), sinks); err != nil {
		t.Errorf("a folder that does not say which sink is the first: %v", err)
	}
}

func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, made := t.TempDir(), fstest.MapFS{}
	for name, text := range files {
		made[name] = &fstest.MapFile{Data: []byte(text)}
	}
	if err := os.CopyFS(dir, made); err != nil {
		t.Fatal(err)
	}
	return dir
}
