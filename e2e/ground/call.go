package ground

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// The services that lull itself never calls are called by hand, signed: their SDKs would be
// dependencies of the product's module.

// CallError is an answer that is no success.
type CallError struct {
	What   string // "sns Publish"
	Status int
	Body   string
}

func (e *CallError) Error() string {
	return fmt.Sprintf("%s: status %d: %s", e.What, e.Status, e.Body[:min(len(e.Body), 600)])
}

// query asks a service of the query protocol (SNS, IAM, CloudFormation, STS) and returns the XML.
func (g *Ground) query(ctx context.Context, service, version, action string, form url.Values) ([]byte, error) {
	all := url.Values{"Action": {action}, "Version": {version}}
	for name, values := range form {
		all[name] = values
	}
	req, err := g.request(ctx, http.MethodPost, "/", []byte(all.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	return g.do(req, service, service+" "+action, []byte(all.Encode()))
}

// target asks a service of the JSON protocol (EventBridge, CloudWatch Logs, SSM).
func (g *Ground) target(ctx context.Context, service, target string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := g.request(ctx, http.MethodPost, "/", body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", target)
	return g.decode(req, service, target, body, out)
}

// rest asks Lambda.
func (g *Ground) rest(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	req, err := g.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return g.decode(req, "lambda", "lambda "+method+" "+path, body, out)
}

func (g *Ground) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(aws.ToString(g.Account.BaseEndpoint), "/")+
		path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	return req, nil
}

func (g *Ground) decode(req *http.Request, service, what string, body []byte, out any) error {
	answer, err := g.do(req, service, what, body)
	if err != nil || out == nil || len(answer) == 0 {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s: read the answer: %w", what, err)
	}
	return nil
}

func (g *Ground) do(req *http.Request, service, what string, body []byte) ([]byte, error) {
	who, err := g.Account.Credentials.Retrieve(req.Context())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	hash := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(req.Context(), who, req, hex.EncodeToString(hash[:]), service, g.Account.Region,
		time.Now()); err != nil {
		return nil, fmt.Errorf("%s: sign: %w", what, err)
	}
	res, err := g.Account.HTTPClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: read the answer: %w", what, err)
	}
	if res.StatusCode/100 != 2 {
		return nil, &CallError{what, res.StatusCode, string(answer)}
	}
	return answer, nil
}
