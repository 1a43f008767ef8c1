// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/config"
)

var here *ground.Ground

func TestMain(m *testing.M) {
	ground.Main(m, func(ctx context.Context, g *ground.Ground) error {
		here = g
		return g.Bootstrap(ctx)
	})
}

// Each stack is deployed when a test first needs it. All tests share the stacks.
var (
	expressStack = sync.OnceValues(func() (*ground.Stack, error) {
		return deploy(ground.Settings{Stack: "lull-express", Kind: config.FlightExpress, Archive: true})
	})
	standardStack = sync.OnceValues(func() (*ground.Stack, error) {
		return deploy(ground.Settings{Stack: "lull-standard", Kind: config.FlightStandard})
	})
	defaultStack = sync.OnceValues(func() (*ground.Stack, error) {
		return deploy(ground.Settings{Stack: "lull-default", Default: true, CMS: cms().url})
	})
)

// inParts deploys two stacks, each with a part of the documents.
var inParts = sync.OnceValues(func() (stacks [2]*ground.Stack, err error) {
	for i := range stacks {
		stacks[i], err = deploy(ground.Settings{
			Stack: fmt.Sprint("lull-part-", i+1), Kind: config.FlightExpress,
			Parts: config.Parts{Of: len(stacks), This: i + 1},
		})
		if err != nil {
			return stacks, err
		}
	}
	return stacks, nil
})

func deploy(settings ground.Settings) (*ground.Stack, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	return here.Deploy(ctx, settings)
}

// express returns the stack with Express flights, when all its queues are empty.
func express(t *testing.T) *ground.Stack { t.Helper(); return ready(t, expressStack) }

// standard returns the stack with Standard flights, when all its queues are empty.
func standard(t *testing.T) *ground.Stack { t.Helper(); return ready(t, standardStack) }

func ready(t *testing.T, stack func() (*ground.Stack, error)) *ground.Stack {
	t.Helper()
	s, err := stack()
	ground.Must(t, err)
	s.Drained(t)
	return s
}
