// SPDX-License-Identifier: Apache-2.0

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
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// The environment variables of the tests. run.sh sets them, with the values of localstack/env.sh.
const (
	envEndpoint = "AWS_ENDPOINT_URL"
	envSearch   = "OPENSEARCH_URL"
	envRoot     = "LULL_E2E_ROOT"     // the repository
	envWork     = "LULL_E2E_WORK"     // the folder of this run, with the programs infra and lull
	envDist     = "LULL_E2E_DIST"     // the functions' binaries, for the machine that runs them
	envSinkURL  = "LULL_E2E_SINK_URL" // the address of OpenSearch for the functions, if it differs
	envBefore   = "LULL_E2E_BEFORE"   // an earlier build: the program infra, and the functions in dist
	envServers  = "LULL_E2E_SERVERS"  // "ours" if run.sh started the servers, so that tests may stop and kill them
)

// The environment variables that acceptance sets, for itself and for the tests that it runs.
const (
	EnvAccount = "LULL_E2E_ACCOUNT" // the id of an account of AWS, in place of an emulator
	EnvStack   = "LULL_E2E_STACK"   // what the names of stacks begin with, in place of lull
)

// Ground is a running emulator and a running OpenSearch, or an account of AWS and its domain.
type Ground struct {
	Account   aws.Config // the account, with the credentials of its owner
	AccountID string
	Real      bool // the account is one of AWS
	Search    *Search

	Root, Work string // the folders of the repository and of this run
	sinkURL    string
	now        build
	ours       bool
}

// build is one build of lull: the program that synthesises the template, and the folder with the
// functions' binaries.
type build struct{ infra, dist string }

// Open reads the addresses of the servers from the environment. It does not send a request.
func Open() (*Ground, error) {
	var errs []error
	need := func(name string) string {
		v := os.Getenv(name)
		if v == "" {
			errs = append(errs, fmt.Errorf("%s is not set", name))
		}
		return v
	}
	account := os.Getenv(EnvAccount)
	var endpoint string
	if account == "" {
		endpoint = need(envEndpoint)
	}
	search, work, dist, root := os.Getenv(envSearch), need(envWork), need(envDist), need(envRoot)
	if account == "" {
		search = need(envSearch)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("there are no servers to test on (run make e2e or make e2e-iam): %w", err)
	}
	g := &Ground{
		Account: aws.Config{
			Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
			BaseEndpoint: &endpoint, HTTPClient: caller,
		},
		AccountID: EmulatorAccount, Search: &Search{url: search},
		Root: root, Work: work, now: build{filepath.Join(work, "infra"), dist},
		sinkURL: search, ours: os.Getenv(envServers) == "ours",
	}
	if url := os.Getenv(envSinkURL); url != "" {
		g.sinkURL = url
	}
	if account == "" {
		return g, nil
	}
	client := awshttp.NewBuildableClient().WithTimeout(time.Minute)
	var err error
	g.Account, err = awsconfig.LoadDefaultConfig(context.Background(), awsconfig.WithHTTPClient(client))
	if err != nil {
		return nil, fmt.Errorf("read the credentials: %w", err)
	}
	caller = g.Account.HTTPClient // it trusts the certificates of AWS_CA_BUNDLE
	g.AccountID, g.Real, g.Search.sign = account, true, g.signSearch
	return g, nil
}

// SearchAt sets the address of the search engine, if it was not known when the account was opened.
func (g *Ground) SearchAt(url string) { g.Search.url, g.sinkURL = url, url }

// Main calls prepare and then runs the tests. It does not return.
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

// EmulatorAccount is the id of the account in the emulators.
const EmulatorAccount = "000000000000"
