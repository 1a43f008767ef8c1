// SPDX-License-Identifier: Apache-2.0

//go:build e2elong

package long

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lullhq/lull/e2e/ground"
)

// load is a load that fails its test.
type load struct {
	*ground.Load
	s *ground.Stack
	c string
}

// startLoad starts a load that ends with the test.
func startLoad(t *testing.T, s *ground.Stack, collection string) load {
	t.Helper()
	return load{s.Load(t.Context(), collection, ground.LoadRate{}), s, collection}
}

// commits waits until each document has this number of further commits.
func (l load) commits(t *testing.T, more int) {
	t.Helper()
	before := l.versions(t)
	ground.Until(t, fmt.Sprintf("%d more versions of every document", more), func() (bool, string) {
		var waiting []string
		for id, now := range l.versions(t) {
			if now < before[id]+more {
				waiting = append(waiting, id)
			}
		}
		return len(waiting) == 0, strings.Join(waiting, " ")
	})
}

// versions reads the committed versions. An emulator sometimes closes a connection.
func (l load) versions(t *testing.T) map[string]int {
	t.Helper()
	var all map[string]int
	ground.Until(t, "read the rows of the load", func() (bool, string) {
		var err error
		all, err = l.Versions(t.Context())
		return err == nil, fmt.Sprint(err)
	})
	return all
}

// stop ends the load, waits until the newest version of each document is committed, and returns
// these versions.
func (l load) stop(t *testing.T) map[string]int {
	t.Helper()
	newest, sent, faults := l.Stop()
	for _, fault := range faults {
		t.Error(fault)
	}
	t.Logf("%d versions of %d documents", sent, len(newest))
	l.s.Drained(t)
	for id, version := range newest {
		l.s.Committed(t, ground.Key(l.c, id), version)
	}
	l.s.Drained(t)
	return newest
}
