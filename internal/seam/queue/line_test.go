// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"
	"time"
)

var line = Line{
	Number: 5, Offset: 1234, Written: time.UnixMicro(1763654400123456).UTC(), Object: ObjectURL("b", "a b/\n"),
}

func FuzzLineOf(f *testing.F) {
	f.Add(line.Text())
	f.Add("0 0 0 s3://b/k")
	f.Add("5 -1 0 s3://b/k")
	f.Add("99999999999999999999 1 1 s3://b/k")
	f.Fuzz(func(t *testing.T, text string) {
		l, ok := LineOf(map[string]Attribute{AttrLine: Text(text)})
		if !ok {
			return
		}
		again, ok := LineOf(map[string]Attribute{AttrLine: Text(l.Text())})
		if !ok || again != l || l.Number < 1 || l.Offset < 0 {
			t.Errorf("%q was parsed as %+v, whose text is %q", text, l, l.Text())
		}
	})
}

func TestALineSaysWhereItIs(t *testing.T) {
	t.Parallel()
	l := line
	got, ok := LineOf(map[string]Attribute{AttrLine: Text(l.Text())})
	if !ok || got != l || l.Object != "s3://b/a%20b/%0A" {
		t.Errorf("got %+v, %v; want %+v", got, ok, l)
	}
	for _, bad := range []string{"", "5 1 1", "0 1 1 s3://b/k", "5 1 1 b/k", "5 1 x s3://b/k"} {
		if got, ok := LineOf(map[string]Attribute{AttrLine: Text(bad)}); ok {
			t.Errorf("%q is %+v", bad, got)
		}
	}
}
