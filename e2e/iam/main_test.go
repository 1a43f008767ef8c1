// SPDX-License-Identifier: Apache-2.0

//go:build e2eiam

package iam

import (
	"context"
	"testing"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/config"
)

var stack *ground.Stack

func TestMain(m *testing.M) {
	ground.Main(m, func(ctx context.Context, g *ground.Ground) (err error) {
		stack, err = g.DeployPlain(ctx, ground.Settings{Stack: "lull-iam", Kind: config.FlightExpress})
		return err
	})
}
