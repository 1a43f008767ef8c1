// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/objects"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
	"github.com/lullhq/lull/source/s3"
)

// lines configures notifications of objects in which every line is a native event. The pace is ten
// lines a second, at most 200 in one slice.
func lines(c *config.Config) {
	c.Sources["exports"] = config.Source{
		Kind: "s3", Options: s3.Options{S3: s3.Key{Lines: "native", LinesPerSecond: 10, MaxText: 1 << 20}},
		Match: []source.Match{{Bucket: "b"}},
	}
	c.Payload.Allow = []config.BucketPrefix{{Bucket: "b"}}
}

// created makes the notification of a new object.
func created(key, sequencer, etag string) string {
	return fmt.Sprintf(`{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","eventTime":`+
		`"2000-01-01T00:00:00Z","s3":{"bucket":{"name":"b"},"object":{"key":%q,"size":9,"eTag":%q,"sequencer":%q}}}]}`,
		key, etag, sequencer)
}

// bucket is the content of a bucket, by key. An empty value means that the object was deleted.
type bucket map[string]string

func (o bucket) open(_ context.Context, _, key, etag string, from int64) (io.ReadCloser, error) {
	text, there := o[key]
	switch {
	case !there:
		return nil, objects.ErrGone
	case etag != "" && etag != "1":
		return nil, objects.ErrReplaced
	}
	return io.NopCloser(strings.NewReader(text[from:])), nil
}

// reading makes the bench read objects from a bucket.
func reading(t *testing.T, b *bench, o bucket) *bench {
	t.Helper()
	b.open = o.open
	return b
}

// until polls until nothing is left of the notifications. It returns how often each line was sent.
func (b *bench) until(quiet time.Duration) (sent map[string]int) {
	b.Helper()
	sent = map[string]int{}
	for idle := time.Duration(0); idle < quiet; idle += time.Second {
		n := b.live.Counts()
		if n.Visible > 0 {
			b.poll()
		}
		for {
			batch, err := b.bulk.Receive(b.Context(), 1000, 0)
			if err != nil {
				b.Fatal(err)
			}
			if len(batch) == 0 {
				break
			}
			for _, m := range batch {
				if age := time.Since(m.FirstSent()); age < time.Since(b.begun)-time.Second {
					b.Errorf("a line is %s old, but its object is %s old", age, time.Since(b.begun))
				}
				sent[b.Event(m).Version+" "+string(b.Event(m).Doc)]++
				b.bulk.Delete(b.Context(), []string{m.Receipt})
			}
		}
		if n != (memory.QueueCounts{}) {
			idle = 0
		}
		time.Sleep(time.Second)
	}
	return sent
}

// events makes the text of an object with n lines.
func events(n int) (text string, want []string) {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, put(fmt.Sprint("d", i), i+1))
		want = append(want, fmt.Sprintf("%d content#d%d", i+1, i))
	}
	slices.Sort(want)
	return b.String(), want
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestEveryLineOfAnObjectBecomesAMessageOnce(t *testing.T) {
	t.Parallel()
	usecasetest.Table(t, stage(lines).play, map[string]bool{"text": false, "gzip": true}, func(b *bench, packed bool) {
		text, want := events(1000)
		if packed {
			text = zipped(t, text)
		}
		reading(t, b, bucket{"k": text})
		b.send(created("k", "01", "1"))
		begun := time.Now()
		sent := b.until(time.Minute)
		if got := slices.Sorted(maps.Keys(sent)); !slices.Equal(got, want) {
			b.Errorf("%d lines became messages, want %d", len(got), len(want))
		}
		for line, n := range sent {
			if n != 1 {
				b.Errorf("%s was sent %d times, want once", line, n)
			}
		}
		if took := time.Since(begun) - time.Minute; took < 80*time.Second || took > 110*time.Second {
			b.Errorf("reading took %s, want ten lines a second", took)
		}
		p, err := objects.Parse(b.Row(shard.ObjectRow("search", "b", "k")).Cursor)
		if err != nil || !p.Done || p.Sent != 1000 || p.Part != 6 {
			b.Errorf("the row has progress %+v, %v", p, err)
		}
	})
}

// The function is killed at each of its calls in turn, before and after the call. No line is lost,
// and only the lines of the slice in which it was killed are sent twice.
func TestACrashAtAnyStepLosesNoLine(t *testing.T) {
	t.Parallel()
	for _, what := range []fault.Verdict{fault.CrashBefore, fault.CrashAfter, fault.FailBefore, fault.FailAfter} {
		for at := range 60 {
			t.Run(fmt.Sprintf("%s %d", what, at), func(t *testing.T) {
				play(t, lines, func(b *bench) {
					text, want := events(450)
					reading(t, b, bucket{"k": zipped(t, text+"bad")})
					b.send(created("k", "01", "1"))
					var calls atomic.Int64 // two deliveries may be handled side by side
					b.inject = decide(func(fault.Op) fault.Verdict {
						if calls.Add(1) == int64(at)+1 {
							return what
						}
						return fault.OK
					})
					sent := b.until(10 * time.Minute)
					if got := slices.Sorted(maps.Keys(sent)); !slices.Equal(got, want) {
						t.Errorf("%s at call %d: %d lines became messages, want %d", what, at, len(got), len(want))
					}
					total := 0
					for _, n := range sent {
						total += n
					}
					if total > 450+200 {
						t.Errorf("%s at call %d: %d messages for 450 lines, which is too many", what, at, total)
					}
					l := b.TakeLetters(b.dead)
					if len(l) == 0 || l[0].ID != l[len(l)-1].ID || !strings.Contains(l[0].Detail, "line 451 ") {
						t.Errorf("%s at call %d: dead letters %+v, want one for the bad line", what, at, l)
					}
					if n := calls.Load(); n <= int64(at) {
						t.Errorf("there are only %d calls: the test must try more", n)
					}
				})
			})
		}
	}
}

func TestTwoNotificationsOfAnObjectReadItOnce(t *testing.T) {
	play(t, lines, func(b *bench) {
		text, _ := events(600)
		reading(t, b, bucket{"k": text})
		b.send(created("k", "01", "1"))
		b.poll()
		b.send(created("k", "01", "1"))
		for line, n := range b.until(time.Minute) {
			if n != 1 {
				t.Fatalf("%s was sent %d times", line, n)
			}
		}
		b.send(created("k", "01", "1"))
		if sent := b.until(time.Minute); len(sent) > 0 {
			t.Errorf("the object was read again: %d lines", len(sent))
		}
	})
}

// Each object of the notification is read further by a separate message.
func TestOneNotificationMayNameSeveralObjects(t *testing.T) {
	play(t, lines, func(b *bench) {
		text, want := events(900)
		half := strings.Index(text, `"d450"`)
		half = strings.LastIndexByte(text[:half], '\n') + 1
		reading(t, b, bucket{"1": text[:half], "2": text[half:]})
		one, two := created("1", "01", "1"), created("2", "01", "1")
		b.send(strings.TrimSuffix(one, "]}") + "," + strings.TrimPrefix(two, `{"Records":[`))
		sent := b.until(time.Minute)
		if got := slices.Sorted(maps.Keys(sent)); !slices.Equal(got, want) {
			t.Errorf("%d lines became messages, want %d", len(got), len(want))
		}
		for line, n := range sent {
			if n != 1 {
				t.Fatalf("%s was sent %d times", line, n)
			}
		}
		if n := len(b.Notes.Of(journal.ObjectDone)); n != 2 {
			t.Errorf("%d objects were read to their end, want 2", n)
		}
	})
}

func TestWhatAnObjectCannotGiveIsADeadLetterThatSaysWhere(t *testing.T) {
	t.Parallel()
	good, _ := events(3)
	var noise strings.Builder // this text does not compress, and its last line never ends
	for dice := rand.New(rand.NewPCG(1, 1)); noise.Len() < 200_000; {
		noise.WriteByte('0' + byte(dice.IntN(64)))
	}
	for name, tt := range map[string]struct {
		text string
		want string
		sent int
	}{
		"gone":        {want: "the object is not there"},
		"broken gzip": {text: "\x1f\x8bxxxxxxxxxxxxx", want: "gzip data is broken"},
		"cut gzip":    {text: zipped(t, strings.Repeat(good, 9))[:90], want: "ends too early"},
		"lines": {
			text: good + "[\n" + strings.Repeat("x", 2<<20) + "\n", sent: 3,
			want: "2 of 5 lines cannot be messages: line 4 at byte",
		},
		"lines, then cut gzip": {
			text: zipped(t, good+"[\n"+noise.String())[:100_000], sent: 3,
			want: "ends too early, behind 4 lines; 1 of 4 lines cannot be messages: line 4 at byte",
		},
		"too much text": {text: good + strings.Repeat("\n", 3<<20), want: "longer than allowed: 1048576 bytes, behind", sent: 3},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, lines, func(b *bench) {
				o := bucket{}
				if tt.text != "" {
					o["k"] = tt.text
				}
				if name == "lines" {
					s := b.Config.Sources["exports"]
					s.Options = s3.Options{S3: s3.Key{Lines: "native", LinesPerSecond: 10, MaxText: 10 << 20}}
					b.Config.Sources["exports"] = s
					var err error
					if b.Sources, err = source.New(&b.Config); err != nil {
						t.Fatal(err)
					}
				}
				reading(t, b, o)
				b.send(created("k", "01", "1"))
				sent := b.until(3 * time.Minute)
				l := b.TakeLetters(b.dead)
				if len(l) != 1 || l[0].Reason != deadletter.Payload || !strings.Contains(l[0].Detail, tt.want) ||
					!strings.Contains(l[0].Detail, "s3://b/k") || l[0].Body != created("k", "01", "1") {
					t.Errorf("%s: dead letters %+v, want one that says %q", name, l, tt.want)
				}
				if len(sent) != tt.sent && tt.sent > 0 {
					t.Errorf("%s: %d lines were sent, want %d", name, len(sent), tt.sent)
				}
			})
		})
	}
}

func TestANewerObjectTakesThePlaceOfAnOlderOne(t *testing.T) {
	play(t, lines, func(b *bench) {
		old, _ := events(600)
		o := bucket{"k": old}
		reading(t, b, o)
		b.send(created("k", "01", "1"))
		b.poll()
		o["k"] = put("new", 1)
		b.send(created("k", "02", "1"))
		sent := b.until(2 * time.Minute)
		if len(sent) != 201 || sent["1 content#new"] != 1 {
			t.Errorf("%d lines were sent, want the first slice of the old object, and the new one", len(sent))
		}
		// The ETag shows that the object was replaced before the notification of the newer object
		// arrives.
		b.send(created("other", "01", "old"))
		o["other"] = put("other", 1)
		if sent := b.until(time.Minute); len(sent) != 0 || len(b.TakeLetters(b.dead)) != 0 {
			t.Errorf("another object was read: %v", sent)
		}
		b.send(strings.Replace(created("k", "03", ""), "ObjectCreated:Put", "ObjectRemoved:Delete", 1))
		b.keeps(0, "a notification of a removal is done at once")
		if n := len(b.Notes.Of(journal.Skipped)); n != 2 {
			t.Errorf("%d notes about skipped objects, want 2", n)
		}
	})
}

// Lines without a version get the time of the object, and then their position in the object.
func TestLaterLinesAndLaterObjectsWin(t *testing.T) {
	play(t, func(c *config.Config) {
		lines(c)
		native := c.Sources["native"]
		native.NoVersion, native.Class = config.NoVersionArrival, config.ClassTime
		c.Sources["native"] = native
	}, func(b *bench) {
		line := func(title string) string {
			return fmt.Sprintf(`{"type":"doc.changed","subject":"a","data":{"title":%q}}`, title)
		}
		notified := func(key, at string) string {
			return strings.Replace(created(key, "01", "1"), "00:00:00Z", at, 1)
		}
		titles := []string{"z", "a", "y", "b", "x", "c", "w", "d", "v", "e"}
		var text string
		for _, title := range titles {
			text += line(title) + "\n"
		}
		reading(t, b, bucket{"1": text, "2": line("last")})
		time.Sleep(time.Minute)
		b.send(notified("2", "00:00:00.002Z"), notified("1", "00:00:00.001Z"))
		b.poll()
		var got []event.Event
		for range 2 {
			batch, err := b.bulk.Receive(t.Context(), 100, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range batch {
				e := b.Event(m)
				if again := b.Event(m); again.Key != e.Key {
					t.Errorf("one line has two order keys")
				}
				got = append(got, e)
			}
		}
		slices.SortFunc(got, func(a, b event.Event) int { return cmp.Compare(a.Key, b.Key) })
		for i, title := range append(titles, "last") {
			if len(got) <= i || !strings.Contains(got[i].Data, `"`+title+`"`) {
				t.Fatalf("in the order of the keys, %s is not number %d: %+v", title, i, got)
			}
		}
	})
}

// A sender of notifications may forge a sequencer above all others. S3 then has the object that the
// later notification names, so the sequencer in the row is wrong.
func TestAForgedSequencerSilencesNoObject(t *testing.T) {
	play(t, lines, func(b *bench) {
		o := bucket{"k": put("old", 1)}
		b.open = func(ctx context.Context, bucket, key, etag string, from int64) (io.ReadCloser, error) {
			if etag == "new" && strings.Contains(o["k"], `"new"`) {
				etag = "1"
			}
			return o.open(ctx, bucket, key, etag, from)
		}
		forged := created("k", strings.Repeat("F", 18), "")
		// Sent together, the two are read in any order, and the older one may then wait as a dead letter.
		b.send(created("k", "01", "1"))
		b.until(time.Minute)
		b.begun = time.Time{}
		b.send(forged)
		b.until(time.Minute)
		o["k"] = put("new", 1)
		b.send(created("k", "02", "new"), created("k", "01", "old")) // the second notification is late
		if sent := b.until(time.Minute); len(sent) != 0 {
			t.Errorf("%v was sent, want the object to wait for an operator", sent)
		}
		l := b.TakeLetters(b.dead)
		if len(l) != 1 || l[0].Body != created("k", "02", "new") || l[0].Reason != deadletter.Payload ||
			!strings.Contains(l[0].Detail, "lull object --reset") || !strings.Contains(l[0].Detail, "s3://b/k") {
			t.Fatalf("dead letters %+v, want one for the object in the bucket", l)
		}
		reset := func() {
			row := b.Row(shard.ObjectRow("search", "b", "k"))
			p, err := objects.Parse(row.Cursor)
			if err != nil {
				t.Fatal(err)
			}
			if p, err = p.Reset(); err != nil {
				t.Fatal(err)
			}
			b.Write(shard.Advance(row.Doc, row.RanAt, row.RanAt+1, p.String(), row.ExpiresAt))
			b.begun = time.Time{}
		}
		reset()
		b.send(forged, l[0].Body, forged) // the redrive, between two forged notifications
		sent := b.until(time.Minute)
		if len(sent) != 1 || sent["1 content#new"] != 1 || len(b.TakeLetters(b.dead)) != 0 {
			t.Errorf("%v was sent, want the new object once", sent)
		}
		o["k"], b.begun = put("newest", 1), time.Time{}
		b.send(created("k", "03", "1"), forged)
		if sent := b.until(time.Minute); len(sent) != 1 || sent["1 content#newest"] != 1 {
			t.Errorf("%v was sent, want the newest object once", sent)
		}
		// Another forged notification and another reset: neither of the two forged sequencers is
		// read again.
		second := created("k", strings.Repeat("E", 18), "")
		b.begun = time.Time{}
		b.send(second)
		b.until(time.Minute)
		reset()
		o["k"] = put("last", 1)
		b.send(forged, second, created("k", "04", "1"), second, forged)
		if sent := b.until(time.Minute); len(sent) != 1 || sent["1 content#last"] != 1 {
			t.Errorf("%v was sent, want the last object once", sent)
		}
	})
}

// Either the row is right, or the content is the same. So no operator needs to look.
func TestAnObjectThatWasReadUnderALaterSequencerIsStaleQuietly(t *testing.T) {
	play(t, lines, func(b *bench) {
		reading(t, b, bucket{"k": put("a", 1)})
		b.send(created("k", "02", "1"))
		b.until(time.Minute)
		b.send(created("k", "01", "1"), created("k", "01", ""), created("k", "01", "other"))
		if sent := b.until(time.Minute); len(sent) != 0 || len(b.TakeLetters(b.dead)) != 0 {
			t.Errorf("sent %v or dead letters, want neither", sent)
		}
		b.Noted(journal.Stale, 3)
	})
}
