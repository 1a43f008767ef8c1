// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/pipeline/archive/archivetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/deadletter/deadlettertest"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/flight/flighttest"
	"github.com/lullhq/lull/internal/seam/queue/queuetest"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/seam/schedule/scheduletest"
)

func TestTheQueueIsAQueue(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, func(_ *testing.T, s queuetest.Settings) queuetest.Backend {
		dead := memory.NewQueue(clock.System{}, memory.QueueSettings{Name: "dead"})
		q := memory.NewQueue(clock.System{}, memory.QueueSettings{
			Name: "live", Visibility: s.Visibility, MaxReceiveCount: s.MaxReceiveCount, DeadLetter: dead,
		})
		return queuetest.Backend{Queue: q, Receive: q.Receive, Dead: dead.Receive, Moved: "live"}
	}, queuetest.Capabilities{Bubble: synctest.Test, StaleIsGone: true, TwelveHours: true, Redrive: true})
}

func TestFlightsAreAStore(t *testing.T) {
	t.Parallel()
	flighttest.Run(t, func(*testing.T) flight.Store { return memory.NewFlights(clock.System{}) })
}

func TestTheArchiveIsAStore(t *testing.T) {
	t.Parallel()
	archivetest.Run(t, func(*testing.T) archive.Store {
		return memory.NewArchive(clock.System{}, 100*365*24*time.Hour)
	})
}

func TestDeadLettersAreAStore(t *testing.T) {
	t.Parallel()
	deadlettertest.Run(t, func(*testing.T) deadletter.Store { return memory.NewDeadLetters() })
}

func TestTheScheduleIsAStore(t *testing.T) {
	t.Parallel()
	scheduletest.Run(t, func(*testing.T) schedule.Store { return memory.NewSchedule() })
}
