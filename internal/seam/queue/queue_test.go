// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/lullhq/lull/internal/seam/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFirstSentMakesAMessageOlderNeverNewer(t *testing.T) {
	t.Parallel()
	sent := time.UnixMilli(1_777_888_800_123)
	for _, c := range []struct {
		name string
		attr queue.Attribute
		want time.Time
	}{
		{"earlier", queue.Text("1777888800122"), sent.Add(-time.Millisecond)},
		{
			"earlier, as a number",
			queue.Attribute{Type: "Number", String: "1777000000000"},
			time.UnixMilli(1_777_000_000_000),
		},
		{"long ago", queue.Text("0"), time.UnixMilli(0)},
		{"the same", queue.Text("1777888800123"), sent},
		{"later", queue.Text("1777888800124"), sent},
		{"far later", queue.Text("9999999999999999"), sent},
		{"empty", queue.Text(""), sent},
		{"negative", queue.Text("-1"), sent},
		{"with a fraction", queue.Text("1777888800122.0"), sent},
		{"not a number", queue.Text("yesterday"), sent},
		{"too long", queue.Text("00001777888800122"), sent},
		{"binary", queue.Attribute{Type: "Binary", Binary: []byte("1")}, sent},
	} {
		m := queue.Message{Sent: sent, Attributes: map[string]queue.Attribute{queue.AttrFirstSent: c.attr}}
		if got := m.FirstSent(); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := (queue.Message{Sent: sent}).FirstSent(); !got.Equal(sent) {
		t.Errorf("without the attribute: %s, want %s", got, sent)
	}
}

func FuzzFirstSent(f *testing.F) {
	for _, s := range []string{"", "0", "1777888800122", "99999999999999999999", "-1"} {
		f.Add(s)
	}
	sent := time.UnixMilli(1_777_888_800_123)
	f.Fuzz(func(t *testing.T, text string) {
		m := queue.Message{Sent: sent, Attributes: map[string]queue.Attribute{queue.AttrFirstSent: queue.Text(text)}}
		if got := m.FirstSent(); got.After(sent) || got.Before(time.UnixMilli(0)) {
			t.Errorf("%q gives %s for a message sent at %s", text, got, sent)
		}
	})
}

func TestBytesCountsWhatSQSCounts(t *testing.T) {
	t.Parallel()
	got := queue.Bytes("größer", map[string]queue.Attribute{
		"a":   queue.Text("xyz"),
		"bin": {Type: "Binary", Binary: []byte{1, 2}},
	})
	if want := len("größer") + len("a"+"String"+"xyz") + len("bin"+"Binary") + 2; got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.String().Draw(t, "body")
		if got, want := queue.Bytes(body, nil), len(body); got != want {
			t.Fatalf("%d bytes, want %d", got, want)
		}
	})
}

func TestWholeSecondsRoundsUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]time.Duration{
		-1500 * time.Millisecond: -1500 * time.Millisecond, // a negative duration does not change
		0:                        0,
		1:                        time.Second,
		time.Second - 1:          time.Second,
		time.Second:              time.Second,
		time.Second + 1:          2 * time.Second,
		queue.MaxHold - 1:        queue.MaxHold,
	} {
		if got := queue.WholeSeconds(d); got != want {
			t.Errorf("%s becomes %s, want %s", d, got, want)
		}
	}
}

func TestErrorAtReadsAnAnswer(t *testing.T) {
	t.Parallel()
	failed := errors.New(strings.Repeat("x", 3))
	if got := queue.ErrorAt(nil, 7); got != nil {
		t.Errorf("%v, want nil because every entry succeeded", got)
	}
	errs := []error{nil, failed}
	if queue.ErrorAt(errs, 0) != nil || !errors.Is(queue.ErrorAt(errs, 1), failed) {
		t.Errorf("%v and %v, want nil and %v", queue.ErrorAt(errs, 0), queue.ErrorAt(errs, 1), failed)
	}
}

func TestAHandleThatIsGoneIsNotAFailure(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for _, tt := range []struct {
		errs []error
		want error
	}{
		{nil, nil},
		{[]error{nil, queue.ErrGone, fmt.Errorf("hold: %w", queue.ErrGone)}, nil},
		{[]error{queue.ErrGone, down, nil}, down},
	} {
		if got := queue.Failed(tt.errs); !errors.Is(got, tt.want) || errors.Is(got, queue.ErrGone) {
			t.Errorf("Failed(%v) = %v, want %v", tt.errs, got, tt.want)
		}
	}
}
