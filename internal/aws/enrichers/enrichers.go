// SPDX-License-Identifier: Apache-2.0

// Package enrichers opens the enrichers that the settings name, with their credentials. The
// functions and the command line use this package.
//
// A secret is read when it is first needed, and again after a few minutes. An enricher that is a
// Lambda function is invoked with one signed HTTP request. The SDK's client for Lambda would add
// 500 KB to the index function.
package enrichers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/aws/secret"
	"github.com/lullhq/lull/internal/aws/sinks"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/pipeline/enrich/httpcall"
	"github.com/lullhq/lull/internal/shard"
)

// Open opens the enrichers for the collections of a sink. Open sends nothing to the enrichers.
func Open(
	ctx context.Context,
	cfg *config.Config,
	sink string,
	from sinks.Account,
) (map[shard.Collection]enrich.Caller, error) {
	callers := map[shard.Collection]enrich.Caller{}
	var errs []error
	for _, c := range cfg.Enriched(sink) {
		caller, err := open(ctx, cfg.Collections[string(c)].Enrich, from)
		if err != nil {
			errs = append(errs, fmt.Errorf("collections.%s.enrich: %w", c, err))
		}
		callers[c] = caller
	}
	return callers, errors.Join(errs...)
}

func open(ctx context.Context, e *config.Enrich, from sinks.Account) (enrich.Caller, error) {
	if e.Kind == config.EnrichHTTP && e.Headers.SecretARN == "" {
		headers, err := from.Headers(e.Headers)
		return httpcall.New(e.URL, e.AllowPrivate, headers), err
	}
	account, err := from.AWS(ctx)
	if err != nil {
		return nil, fmt.Errorf("find AWS credentials: %w", err)
	}
	if e.Kind == config.EnrichHTTP {
		return httpcall.New(e.URL, e.AllowPrivate, secret.NewHeaders(account, e.Headers.SecretARN).Get), nil
	}
	return newFunction(account, e.FunctionARN), nil
}

// function is an enricher that is a Lambda function.
type function struct {
	cfg  aws.Config
	arn  string
	sign *v4.Signer
}

func newFunction(cfg aws.Config, arn string) *function {
	return &function{cfg: client.Plain(cfg), arn: arn, sign: v4.NewSigner()}
}

// Call invokes the function and waits for its answer.
func (f *function) Call(ctx context.Context, request []byte) ([]byte, error) {
	region := strings.Split(f.arn, ":")[3]
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		f.endpoint(region)+"/2015-03-31/functions/"+url.PathEscape(f.arn)+"/invocations", bytes.NewReader(request))
	if err != nil {
		return nil, &enrich.Failure{Reason: "its functionARN is not one"}
	}
	req.Header.Set("Content-Type", "application/json")
	who, err := f.cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, &enrich.Failure{Reason: "there are no AWS credentials"}
	}
	hash := sha256.Sum256(request)
	err = f.sign.SignHTTP(ctx, who, req, hex.EncodeToString(hash[:]), "lambda", region, time.Now())
	if err != nil {
		return nil, &enrich.Failure{Reason: "the request cannot be signed"}
	}
	return httpcall.Do(faulty{f.cfg.HTTPClient}, req)
}

// faulty returns an error if the answer says that the function failed. The body of such an answer
// is the error of the function, and not an enrichment.
type faulty struct{ aws.HTTPClient }

func (c faulty) Do(r *http.Request) (*http.Response, error) {
	res, err := c.HTTPClient.Do(r)
	if err == nil && res.Header.Get("X-Amz-Function-Error") != "" {
		res.Body.Close()
		return nil, &enrich.Failure{Smaller: true, Reason: "the function failed"}
	}
	return res, err
}

// endpoint returns the address of Lambda in the region and the partition of the function.
func (f *function) endpoint(region string) string {
	if f.cfg.BaseEndpoint != nil {
		return strings.TrimRight(*f.cfg.BaseEndpoint, "/")
	}
	domain := "amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		domain = "amazonaws.com.cn"
	}
	return "https://lambda." + region + "." + domain
}
