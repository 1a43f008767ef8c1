package ground

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// The environment: run.sh sets it, from localstack/env.sh.
const (
	envEndpoint = "AWS_ENDPOINT_URL"
	envSearch   = "OPENSEARCH_URL"
	envRoot     = "LULL_E2E_ROOT"     // the repository
	envWork     = "LULL_E2E_WORK"     // the folder of this run, with the programs infra and lull
	envDist     = "LULL_E2E_DIST"     // the functions' binaries, for the machine that runs them
	envSinkURL  = "LULL_E2E_SINK_URL" // OpenSearch as the functions see it, where that differs
	envBefore   = "LULL_E2E_BEFORE"   // an earlier build: the program infra, and the functions in dist
	envServers  = "LULL_E2E_SERVERS"  // "ours" where run.sh started the servers: tests may stop and kill them
)

// Ground is a running emulator and a running OpenSearch.
type Ground struct {
	Account aws.Config // the account, as its owner
	Search  *Search

	Root, Work string // the folders of the repository and of this run
	sinkURL    string
	now        build
	ours       bool
}

// build is one build of lull: the program that synthesises the template, and the folder of the
// functions.
type build struct{ infra, dist string }

// Open finds the servers. It asks them nothing.
func Open() (*Ground, error) {
	var errs []error
	need := func(name string) string {
		v := os.Getenv(name)
		if v == "" {
			errs = append(errs, fmt.Errorf("%s is not set", name))
		}
		return v
	}
	endpoint, search, work, dist := need(envEndpoint), need(envSearch), need(envWork), need(envDist)
	root := need(envRoot)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("there are no servers to test on (run make e2e or make e2e-iam): %w", err)
	}
	g := &Ground{
		Account: aws.Config{
			Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
			BaseEndpoint: &endpoint, HTTPClient: caller,
		},
		Search: &Search{url: search},
		Root:   root, Work: work, now: build{filepath.Join(work, "infra"), dist},
		sinkURL: search, ours: os.Getenv(envServers) == "ours",
	}
	if url := os.Getenv(envSinkURL); url != "" {
		g.sinkURL = url
	}
	return g, nil
}

// Main runs the tests on the ground that prepare makes ready. It does not return.
func Main(m *testing.M, prepare func(context.Context, *Ground) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	g, err := Open()
	if err == nil {
		err = prepare(ctx, g)
	}
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// AccountID is the emulators' account.
const AccountID = "000000000000"
