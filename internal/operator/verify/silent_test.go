// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// The source is well, and never answers about a few documents, such as those that its own code
// cannot show. They must not stop the verification of the others.
func TestDocumentsThatTheSourceNeverShowsDoNotStopAVerification(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(map[string]loss{
			"bad1": {5, 5, 5, shard.Put, "", ""}, "bad2": {5, 5, 5, shard.Put, "", ""}, "bad3": {5, 5, 5, shard.Put, "", ""},
			"bad4": {5, 5, 5, shard.Put, "", ""}, "emptied": {5, 5, 0, shard.Put, "", ""},
		})
		c.answer = func(id string) error {
			if strings.HasPrefix(id, "bad") {
				return &source.Unavailable{Problem: "the source answered 500"}
			}
			return nil
		}
		for range 12 {
			_ = c.portion(10 * time.Minute)
			time.Sleep(5 * time.Minute)
		}
		if s := c.job(); s.Phase != job.Done {
			t.Errorf("got %s, %s", s.Phase, s.Error)
		}
		c.shows("emptied", 5)
	})
}

// The source answers about each document, and then no longer about one that is compared again.
func TestADocumentWithoutASecondAnswerDoesNotHideOthers(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(nil)
		for _, id := range []string{"a-gone", "b-gone"} { // the source does not have them
			c.write(id, 5, 5)
		}
		times := 0
		c.answer = func(id string) error {
			if id != "a-gone" {
				return nil
			}
			if times++; times == 1 {
				return nil
			}
			return &source.Unavailable{Problem: "the source answered 500"}
		}
		for n := 0; n < 20 && c.job().Phase != job.Done; n++ {
			_ = c.portion(3 * time.Minute)
		}
		if s := c.job(); s.Phase != job.Done {
			t.Errorf("got %s, %s", s.Phase, s.Error)
		}
		c.shows("b-gone", 0)
		c.shows("a-gone", 5)
	})
}

// A source may ask for an hour of patience. Portions must not spend this hour.
func TestAPortionDoesNotSpendTheTimeForWhichASourceAsks(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(nil)
		c.answer = func(string) error {
			return &source.Unavailable{Problem: "the source answered 503", RetryAfter: time.Hour}
		}
		_ = c.portion(3 * time.Minute)
		began := time.Now()
		if err := c.portion(3 * time.Minute); err != nil || time.Since(began) > time.Second {
			t.Errorf("got %v, after %s", err, time.Since(began))
		}
	})
}

// slow is a stack whose sink does not answer about a collection.
type slow struct{ operate.API }

func (s slow) Reconcile(ctx context.Context, o operate.ReconcileOrder) (operate.ReconcilePage, error) {
	if o.Collection != "other" {
		<-ctx.Done()
		return operate.ReconcilePage{}, ctx.Err()
	}
	return s.API.Reconcile(ctx, o)
}

// Four verifications share the portions. The steps of three of them never end in time.
func TestAVerificationWithoutProgressLeavesTimeToOthersAndIsAnError(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(nil)
		c.Config.Collections["more"], c.Config.Collections["most"] = c.Config.Collections["content"],
			c.Config.Collections["content"]
		c.Config.Collections["other"] = config.Collection{Verify: &config.Verify{Every: 24 * time.Hour}}
		errs := 0
		for day := range 2 {
			for range 4 {
				s := c.scheduled()
				s.Stack = operatetest.API(s.Stack, slow{s.Stack})
				err := s.Portion(c.Context(), 3*time.Minute)
				if err != nil && strings.Contains(err.Error(), "content") {
					errs++
				}
				time.Sleep(2 * time.Minute)
			}
			if day == 0 {
				time.Sleep(24 * time.Hour)
			}
		}
		phases := map[string]job.Phase{}
		jobs, err := c.stack().Jobs(c.Context())
		for _, j := range jobs {
			phases[j.ID] = j.Phase
			if j.ID == "heal-other" && time.Since(j.Begun) > 12*time.Hour {
				t.Errorf("heal-other began last at %s", j.Begun)
			}
		}
		if err != nil || errs == 0 || phases["heal-content"] != job.Failed || phases["heal-other"] != job.Done {
			t.Errorf("%d portions named the verification that failed; got %v, %v", errs, phases, err)
		}
	})
}
