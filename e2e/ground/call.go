// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/lullhq/lull/internal/deploy/names"
)

// The tests also call services that lull itself never calls. They send signed requests without an
// SDK, because the SDKs of these services would be dependencies of lull's module.

// caller limits the time of every request of the tests, so that an emulator which hangs does not
// hang the tests.
var caller aws.HTTPClient = &http.Client{
	Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64},
}

// Query sends a request to a service with the query protocol (SNS, IAM, CloudFormation, STS), and
// returns the XML of the answer.
func (g *Ground) Query(ctx context.Context, service, version, action string, form url.Values) ([]byte, error) {
	all := url.Values{"Action": {action}, "Version": {version}}
	maps.Copy(all, form)
	return g.send(ctx, service, http.MethodPost, "/", []byte(all.Encode()),
		http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}})
}

// target sends a request to a service with the JSON protocol (EventBridge, SSM).
func (g *Ground) target(ctx context.Context, service, target string, in, out any) error {
	return g.json(ctx, service, http.MethodPost, "/", in, out,
		http.Header{"Content-Type": {"application/x-amz-json-1.1"}, "X-Amz-Target": {target}})
}

// Lambda sends a request about a function to Lambda. It also works after the test has ended.
func (s *Stack) Lambda(t testing.TB, f names.Function, method, path string, in, out any) {
	t.Helper()
	Must(t, s.function(context.WithoutCancel(t.Context()), f, method, path, in, out))
}

// json sends in as JSON and decodes the answer into out. Either may be nil.
func (g *Ground) json(ctx context.Context, service, method, path string, in, out any, header http.Header) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if in == nil {
		body = nil
	}
	answer, err := g.send(ctx, service, method, path, body, header)
	if err != nil || out == nil || len(answer) == 0 {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s: read the answer: %w", service, path, err)
	}
	return nil
}

// send signs a request, sends it and returns the answer. If the status is not a success, it returns
// an error.
func (g *Ground) send(ctx context.Context, service, method, path string, body []byte, header http.Header) ([]byte,
	error,
) {
	what := service + " " + method + " " + path + " " + header.Get("X-Amz-Target")
	address := strings.TrimRight(g.endpoint(service), "/") + path
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header = header
	who, err := g.Account.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if err := sign(ctx, who, req, body, service, g.region(service)); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	status, kind, answer, err := exchange(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if status/100 != 2 {
		return nil, fmt.Errorf("%s: status %d: %s %s", what, status, kind, answer[:min(len(answer), 600)])
	}
	return answer, nil
}

// sign adds the signature of AWS to a request.
func sign(ctx context.Context, who aws.Credentials, req *http.Request, body []byte, service, region string) error {
	hash := sha256.Sum256(body)
	err := v4.NewSigner().SignHTTP(ctx, who, req, hex.EncodeToString(hash[:]), service, region, time.Now())
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	return nil
}

// global is the service without a region. In the partition aws, it is in us-east-1.
const global = "iam"

// endpoint returns the address of a service.
func (g *Ground) endpoint(service string) string {
	switch {
	case !g.Real:
		return aws.ToString(g.Account.BaseEndpoint)
	case service == global:
		return "https://" + service + ".amazonaws.com"
	}
	return "https://" + service + "." + g.Account.Region + ".amazonaws.com"
}

// region returns the region with which the requests to a service are signed.
func (g *Ground) region(service string) string {
	if g.Real && service == global {
		return "us-east-1"
	}
	return g.Account.Region
}

// signSearch signs a request to an OpenSearch domain.
func (g *Ground) signSearch(req *http.Request, body []byte) error {
	who, err := g.Account.Credentials.Retrieve(req.Context())
	if err != nil {
		return fmt.Errorf("read the credentials: %w", err)
	}
	return sign(req.Context(), who, req, body, "es", g.Account.Region)
}

// exchange sends a request and reads the answer. kind is the type of AWS's error, for services that
// name it only in a header.
func exchange(req *http.Request) (status int, kind string, answer []byte, err error) {
	res, err := caller.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(res.Body); err != nil {
		return 0, "", nil, fmt.Errorf("read the answer: %w", err)
	}
	return res.StatusCode, res.Header.Get("X-Amzn-ErrorType"), answer, nil
}
