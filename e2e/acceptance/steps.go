// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/config"
)

// portable matches the end-to-end tests that run on any account: they use only the stack with
// Express flights, and neither stop servers nor read the processes of an emulator.
const portable = "^(TestEveryUpstreamReachesTheSink|TestBurstIsOneWriteOfTheNewest|" +
	"TestHeldMessagesAreInvisibleUntilTheCommit|TestStaleAndDuplicateAreNotWritten|TestDeleteIsAVersion|" +
	"TestCommandsPublishWaitAndShow|TestCommandsRefuseWhatIsWrong|TestResyncGoesThroughTheBulkLane|TestCancel|" +
	"TestUndecodableIsParkedAndDropped|TestBadSettingsLoseNothing|TestReplayBringsBackWhatTheIndexHasLost|" +
	"TestAThousandMessages)$"

// noTests is the value of -tests that runs no test.
const noTests = "none"

// settings are those of the stack. The end-to-end tests deploy the stack with the same settings,
// which then changes nothing.
func (r *runner) settings() ground.Settings {
	return ground.Settings{Stack: "lull-express", Kind: config.FlightExpress, Archive: r.backend != onMinistack}
}

func (r *runner) bootstrap(ctx context.Context) (string, error) {
	if r.backend == onMinistack {
		return "the emulator denies requests that the policies of cdk bootstrap allow", nil
	}
	return "", r.g.Bootstrap(ctx)
}

func (r *runner) deploy(ctx context.Context) (string, error) {
	return "", r.deployed(ctx, r.settings())
}

// deployed deploys the stack with these settings. It changes nothing if the stack has them.
func (r *runner) deployed(ctx context.Context, settings ground.Settings) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	if r.backend == onMinistack {
		r.s, err = r.g.DeployPlain(ctx, settings)
	} else {
		r.s, err = r.g.Deploy(ctx, settings)
	}
	return err
}

// known deploys the stack again if an earlier run did, so that its parts are known.
func (r *runner) known(ctx context.Context) error {
	if r.s != nil {
		return nil
	}
	return r.deployed(ctx, r.settings())
}

func (r *runner) doctor(ctx context.Context) (string, error) {
	if err := r.known(ctx); err != nil {
		return "", err
	}
	return "", r.command(ctx, "doctor")
}

// command runs lull, and returns an error with its output unless the exit code is 0.
func (r *runner) command(ctx context.Context, args ...string) error {
	a, err := r.s.Command(ctx, nil, "", args...)
	if err == nil && a.Code != 0 {
		err = fmt.Errorf("exit code %d:\n%s%s", a.Code, a.Out, a.Errors)
	}
	if err != nil {
		return fmt.Errorf("lull %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// result matches the line in which `go test -v` says how a test ended.
var result = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): \S+ \([0-9.]+s\)$`)

func (r *runner) test(ctx context.Context) (string, error) {
	switch {
	case r.tests == noTests:
		return "no test was asked for", nil
	case r.backend == onMinistack:
		return "make e2e-iam has the tests for this emulator", nil
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-tags", "e2e", "-count=1", "-v", "-timeout", "60m", "-run", r.tests, "./e2e")
	cmd.Dir, cmd.Env = r.g.Root, append(os.Environ(), "OPENSEARCH_URL="+r.state.Search)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	r.state.Tests = result.FindAllString(output.String(), -1)
	slices.Sort(r.state.Tests)
	if err != nil {
		return "", fmt.Errorf("%w:\n%s", err, output.Bytes()[max(0, output.Len()-maxOutput):])
	}
	if len(r.state.Tests) == 0 {
		return "", fmt.Errorf("no test matches %q", r.tests)
	}
	return "", nil
}

// maxOutput bounds the output of failed tests that an error has, in bytes.
const maxOutput = 8000
