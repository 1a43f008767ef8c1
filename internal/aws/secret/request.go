// SPDX-License-Identifier: Apache-2.0

package secret

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
)

// maxAnswer is how many bytes of an answer are read: more than the JSON of the largest secret (64
// KB) has.
const maxAnswer = 512 << 10

// request makes one GetSecretValue request and returns the secret's text.
func (l *cached[T]) request(ctx context.Context) (string, error) {
	payload, err := json.Marshal(map[string]string{"SecretId": l.arn})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.endpoint(), bytes.NewReader(payload))
	if err != nil {
		return "", fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "secretsmanager.GetSecretValue")
	who, err := l.cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return "", fmt.Errorf("get credentials: %w", err)
	}
	hash := sha256.Sum256(payload)
	if err := v4.NewSigner().SignHTTP(ctx, who, req, hex.EncodeToString(hash[:]), "secretsmanager", l.cfg.Region,
		time.Now()); err != nil {
		return "", fmt.Errorf("sign request: %w", err)
	}
	res, err := l.cfg.HTTPClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	var answer struct {
		Type         string `json:"__type"`
		SecretString string `json:"SecretString"`
	}
	// Ignore the error, because it may quote the secret. If the answer cannot be read, the fields
	// stay empty.
	_ = json.Unmarshal(body, &answer)
	switch {
	case res.StatusCode == http.StatusOK && answer.SecretString != "":
		return answer.SecretString, nil
	case res.StatusCode == http.StatusOK:
		return "", errors.New("the answer holds no text: store the secret as text")
	case answer.Type != "":
		return "", &smithy.GenericAPIError{Code: answer.Type, Message: fmt.Sprintf("status %d", res.StatusCode)}
	}
	return "", fmt.Errorf("status %d", res.StatusCode)
}

// endpoint returns the address of Secrets Manager in the region and the partition of the account.
func (l *cached[T]) endpoint() string {
	if l.cfg.BaseEndpoint != nil {
		return strings.TrimRight(aws.ToString(l.cfg.BaseEndpoint), "/") + "/"
	}
	domain := "amazonaws.com"
	if strings.HasPrefix(l.cfg.Region, "cn-") {
		domain = "amazonaws.com.cn"
	}
	return "https://secretsmanager." + l.cfg.Region + "." + domain + "/"
}
