// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // see entries
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/shard"
)

const awsJSON = "application/x-amz-json-1.0"

// inprocess answers the real SDK clients and the OpenSearch client in this process. Every request
// is built, signed and passed to a function, and its answer is parsed, but without sockets and TLS.
// The processor time of inprocess itself counts for the caller.
type inprocess struct {
	rows *memory.Shards

	mu      sync.Mutex
	objects map[string][]byte
}

func newInprocess() *inprocess {
	return &inprocess{rows: memory.NewShards(), objects: map[string][]byte{}}
}

// config returns an AWS configuration that sends every request to inprocess.
func (p *inprocess) config() aws.Config {
	return aws.Config{
		Region: "us-east-1", HTTPClient: p,
		Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "example",
			strings.Repeat("session token ", 40)),
	}
}

// rowWrite carries a conditional write past the SDK in the context. The simulated DynamoDB
// evaluates the write without parsing expressions.
type rowWrite struct{}

// sdkRows is the real table client in front of rows in memory.
type sdkRows struct {
	shard.Store
}

func (s sdkRows) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	return s.Store.Write(context.WithValue(ctx, rowWrite{}, &w), w)
}

// Do answers a request of the SDK.
func (p *inprocess) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("read request: %w", err)
		}
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if op == "" {
		op = r.Method
	}
	switch op {
	case "UpdateItem":
		return p.update(r)
	case "PutItem":
		return answer(200, awsJSON, []byte(`{}`)), nil
	case "BatchGetItem":
		return p.batchGet(r.Context(), body)
	case "SendMessageBatch", "DeleteMessageBatch":
		return entries(body), nil
	case "StartExecution":
		return answer(200, awsJSON, []byte(`{"startDate":1.7e9,`+
			`"executionArn":"arn:aws:states:us-east-1:123456789012:execution:flight:01"}`)), nil
	}
	return p.object(r, body)
}

// RoundTrip answers a request of the OpenSearch client.
func (p *inprocess) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	var items [][]byte
	for line := range bytes.Lines(body) {
		_, rest, isAction := bytes.Cut(line, []byte(`"_id":"`))
		if isAction && bytes.HasPrefix(line, []byte(`{"index":{`)) {
			id, _, _ := bytes.Cut(rest, []byte(`"`))
			items = append(items, slices.Concat([]byte(`{"index":{"_index":"content","_id":"`), id,
				[]byte(`","_version":1,"result":"created","status":201}}`)))
		}
	}
	return answer(200, "application/json", list(`{"took":1,"errors":false,"items":[`, items, `]}`)), nil
}

// list joins JSON items between a head and a tail.
func list(head string, items [][]byte, tail string) []byte {
	return slices.Concat([]byte(head), bytes.Join(items, []byte(",")), []byte(tail))
}

func answer(status int, contentType string, body []byte) *http.Response {
	return &http.Response{
		StatusCode: status, Status: strconv.Itoa(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {contentType}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}
}

// update evaluates the write in the context. update accepts any other update without evaluating it.
func (p *inprocess) update(r *http.Request) (*http.Response, error) {
	w, ours := r.Context().Value(rowWrite{}).(*shard.Write)
	if !ours {
		return answer(200, awsJSON, []byte(`{}`)), nil
	}
	old, err := p.rows.Write(r.Context(), *w)
	var refused *shard.Refused
	switch {
	case errors.As(err, &refused):
		body := item([]byte(`{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",`+
			`"message":"The conditional request failed","Item":`), refused.Row)
		return answer(400, awsJSON, append(body, '}')), nil
	case err != nil:
		return nil, err
	case !old.Exists():
		return answer(200, awsJSON, []byte(`{}`)), nil
	}
	return answer(200, awsJSON, append(item([]byte(`{"Attributes":`), old), '}')), nil
}

// item appends a row in DynamoDB's JSON.
func item(b []byte, r shard.Row) []byte {
	b = append(append(append(b, `{"doc":{"S":"`...), r.Doc...), `"}`...)
	for _, a := range rowAttrs {
		v, ok := r.Get(a)
		if !ok {
			continue
		}
		b = append(append(append(b, `,"`...), a...), `":{"`...)
		b = append(b, byte(v.Kind), '"', ':', '"')
		switch v.Kind {
		case shard.KindBinary:
			b = base64.StdEncoding.AppendEncode(b, []byte(v.Text))
		case shard.KindNumber:
			b = strconv.AppendInt(b, v.Num, 10)
		default:
			b = append(b, v.Text...)
		}
		b = append(b, `"}`...)
	}
	return append(b, '}')
}

// batchGet finds the keys of a request by their shape in the text.
func (p *inprocess) batchGet(ctx context.Context, body []byte) (*http.Response, error) {
	var items [][]byte
	keys := bytes.Split(body, []byte(`{"doc":{"S":"`))
	for _, rest := range keys[1:] {
		key, _, _ := bytes.Cut(rest, []byte(`"`))
		rows, err := p.rows.Read(ctx, []shard.DocID{shard.DocID(key)}, shard.Consistent)
		if err != nil {
			return nil, err
		}
		if rows[0].Exists() {
			items = append(items, item(nil, rows[0]))
		}
	}
	return answer(200, awsJSON, list(`{"Responses":{"shards":[`, items, `]},"UnprocessedKeys":{}}`)), nil
}

// entries answers that every entry of a batch succeeded.
func entries(body []byte) *http.Response {
	var in struct {
		Entries []struct {
			ID   string `json:"Id"`
			Body string `json:"MessageBody"`
		}
	}
	if json.Unmarshal(body, &in) != nil {
		return answer(400, awsJSON, []byte(`{}`))
	}
	var items [][]byte
	for _, e := range in.Entries {
		sum := md5.Sum([]byte(e.Body)) //nolint:gosec // SQS's own checksum, which its client compares
		items = append(items, fmt.Appendf(nil, `{"Id":%q,"MessageId":%[1]q,"MD5OfMessageBody":"%x"}`, e.ID, sum))
	}
	return answer(200, awsJSON, list(`{"Failed":[],"Successful":[`, items, `]}`))
}

// object answers requests to S3.
func (p *inprocess) object(r *http.Request, body []byte) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.Method {
	case http.MethodPut:
		if r.Header.Get("Content-Encoding") == "aws-chunked" { // a checksum follows the last chunk
			var err error
			if body, err = io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(body))); err != nil {
				return nil, fmt.Errorf("read chunks: %w", err)
			}
		}
		p.objects[r.URL.Path] = body
		return answer(200, "application/xml", nil), nil
	case http.MethodGet:
		b, found := p.objects[r.URL.Path]
		if !found {
			return answer(404, "application/xml", []byte(`<Error><Code>NoSuchKey</Code></Error>`)), nil
		}
		return answer(200, "application/octet-stream", b), nil
	case http.MethodPost:
		for _, rest := range bytes.Split(body, []byte("<Key>"))[1:] {
			key, _, _ := bytes.Cut(rest, []byte("<"))
			delete(p.objects, strings.TrimSuffix(r.URL.Path, "/")+"/"+string(key))
		}
		return answer(200, "application/xml", []byte(
			`<DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></DeleteResult>`)), nil
	}
	return nil, fmt.Errorf("%s %s: has no answer here", r.Method, r.URL.Path)
}
