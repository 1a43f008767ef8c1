// SPDX-License-Identifier: Apache-2.0

//go:build e2eiam

package iam

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/infra"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/searchable"
)

// A stack whose function job sends the canary and verifies a collection, and whose URL answers
// questions, each under its deployed role.
func TestTheWorksAndTheURLOfAStack(t *testing.T) {
	versions := map[string]int{"/lost": 1, "/restored": 1, "/well": 1}
	cms := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version, has := versions[r.URL.Path]
		if !has {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"version":%d,"title":"from the source"}`, version)
	}))
	defer cms.Close()
	s, err := stack.DeployPlain(t.Context(), ground.Settings{Stack: "lull-works", Works: true, CMS: cms.URL})
	ground.Must(t, err)
	for _, w := range []config.Work{config.WorkCanary, config.WorkVerify} {
		s.JobRule(t, w, false)
	}
	publisher, reader := s.Role(t, infra.Publisher), s.Role(t, infra.Reader)

	const c = "content"
	for path := range versions {
		event := fmt.Sprintf(`{"type":"doc.touched","collection":%q,"subject":%q,"sequence":"1"}`, c, path[1:])
		s.SaysTo(t, publisher, event+"\n", 0, "1 messages", "publish", "--source", "cms")
	}
	all := map[string]int{"lost": 1, "restored": 1, "well": 1}
	s.Settled(t, c, all)

	t.Run("canary", func(t *testing.T) {
		state := s.DoWork(t, config.WorkCanary, "canary-"+ground.Sink)
		if len(state.Lines) < 6 { // written, published, committed and read back, and the same for the delete
			t.Errorf("the round trip did too little: %+v", state)
		}
		s.Drained(t)
	})
	t.Run("verify", func(t *testing.T) {
		s.Search.Must(t, "DELETE", "/"+s.Index(c)+"/_doc/lost?refresh=true", nil)
		s.Forget(t, ground.Key(c, "restored"))
		state := s.DoWork(t, config.WorkVerify, "heal-"+c)
		if len(state.Lines) != 2 {
			t.Errorf("got %+v, want the two losses", state)
		}
		s.Settled(t, c, all)
	})
	t.Run("searchable", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a, err := s.Questions(t, publisher).Wait(ctx, c, "well", "1")
		if err != nil || a.Searchable != searchable.Yes {
			t.Errorf("got %+v, %v", a, err)
		}
		var refused *searchable.StatusError
		_, err = s.Questions(t, reader).Ask(ctx, searchable.Question{Key: c + "#well"})
		if !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
			t.Errorf("a role that may not ask: got %v, want status %d", err, http.StatusForbidden)
		}
	})
}
