//go:build e2eiam

package iam

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/config"
)

var stack *ground.Stack

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	here, err := ground.Open()
	if err == nil {
		stack, err = here.DeployPlain(ctx, ground.Settings{Stack: "lull-iam", Kind: config.FlightExpress})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
