package command

import (
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
)

func TestStatusSaysWhyASinkIsUnhealthyAndWhatWaits(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	const cause = "configuration: undefined_column: column fence: table k-content"
	for name, c := range map[string]struct {
		k     operate.SinkStatus
		wants []string
		not   string
	}{
		"away": {
			operate.SinkStatus{Open: true, OpenUntil: until, Level: 3, Cause: cause, PutOff: 7},
			[]string{"unhealthy", "(opened 3 times in a row); last reason: " + cause + "; at most 7 messages are put off"},
			"again",
		},
		"back, with messages to come": {
			operate.SinkStatus{Growing: true, Rate: 8, Cause: cause, PutOff: 6582, PutOffUntil: until},
			[]string{"takes documents again: 8.0 documents/s", cause, "at most 6582 messages are put off, and come back by 2026-11-23T12:00:00Z"},
			"healthy",
		},
		"back":      {operate.SinkStatus{Growing: true, Rate: 8}, []string{"healthy again: 8.0 documents/s"}, "put off"},
		"throttles": {operate.SinkStatus{Rate: 8, Cause: cause}, []string{"throttles: 8.0 documents/s; last reason: " + cause}, "put off"},
		"hostile":   {operate.SinkStatus{Open: true, Cause: "a\x1b[31m\nb"}, []string{"last reason: a"}, "\x1b[31m\n"},
	} {
		var out strings.Builder
		showStatus(&out, operate.Status{Sinks: []operate.SinkStatus{c.k}})
		for _, want := range c.wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in %s", name, want, out.String())
			}
		}
		if strings.Contains(out.String(), c.not) {
			t.Errorf("%s: %q in %s", name, c.not, out.String())
		}
	}
}
