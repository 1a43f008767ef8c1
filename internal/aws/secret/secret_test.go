// SPDX-License-Identifier: Apache-2.0

package secret

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/seam/backoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:search-AbCdEf"

// scripted returns a login and the list of its requests. reply answers the n-th request.
func scripted(t *testing.T, reply func(n int) awstest.Reply) (*Login, *[]awstest.Call) {
	t.Helper()
	var mu sync.Mutex
	var calls []awstest.Call
	cfg := awstest.JSON(t, func(c awstest.Call) awstest.Reply {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, c)
		return reply(len(calls))
	})
	return NewLogin(cfg, arn), &calls
}

func value(text string) awstest.Reply {
	return awstest.Reply{Body: map[string]string{"ARN": arn, "SecretString": text}}
}

func TestASecretIsReadWhenNeededAndKeptForAWhile(t *testing.T) {
	t.Parallel()
	l, calls := scripted(t, func(n int) awstest.Reply {
		if n == 1 {
			return value(`{"username":"lull","password":"first"}`)
		}
		return value(`{"username":"lull","password":"rotated","engine":"x"}`)
	})
	now := time.Unix(1_777_888_800, 0)
	l.now = func() time.Time { return now }
	for _, want := range []struct {
		after    time.Duration
		password string
		requests int
	}{{0, "first", 1}, {refreshAfter - time.Second, "first", 1}, {time.Second, "rotated", 2}} {
		now = now.Add(want.after)
		user, password, err := l.Credentials(awstest.Context(t))
		if err != nil || user != "lull" || password != want.password || len(*calls) != want.requests {
			t.Errorf("got %s, %s, %v after %d requests, want %+v", user, password, err, len(*calls), want)
		}
	}
	if c := (*calls)[0]; c.Operation != "GetSecretValue" || string(c.Body) != `{"SecretId":"`+arn+`"}` {
		t.Errorf("got %s %s", c.Operation, c.Body)
	}
}

func TestWhileItCannotBeReadAnewTheLastOneServes(t *testing.T) {
	t.Parallel()
	l, calls := scripted(t, func(n int) awstest.Reply {
		if n == 2 {
			return awstest.Failure(500, "InternalServiceError", "oops")
		}
		return value(`{"username":"lull","password":"` + strings.Repeat("x", n) + `"}`)
	})
	now := time.Unix(1_777_888_800, 0)
	l.now = func() time.Time { return now }
	for _, want := range []struct {
		after    time.Duration
		password string
		requests int
	}{{0, "x", 1}, {refreshAfter, "x", 2}, {retryAfter - 1, "x", 2}, {1, "xxx", 3}} {
		now = now.Add(want.after)
		_, password, err := l.Credentials(awstest.Context(t))
		if err != nil || password != want.password || len(*calls) != want.requests {
			t.Errorf("got %s, %v after %d requests, want %+v", password, err, len(*calls), want)
		}
	}
}

func TestErrorsNameTheSecretAndHoldNoneOfIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reply awstest.Reply
		final bool
		says  string
	}{
		"missing":                          {awstest.Failure(400, "ResourceNotFoundException", "gone"), true, "does not exist"},
		"denied":                           {awstest.Failure(400, "com.amazonaws#AccessDeniedException", "no"), true, "grant"},
		"a KMS key without the permission": {awstest.Failure(400, "DecryptionFailure", "no"), true, "kms:Decrypt"},
		"marked for deletion":              {awstest.Failure(400, "InvalidRequestException", "deleted"), true, "deletion"},
		"unavailable":                      {awstest.Failure(503, "ServiceUnavailable", "oops"), false, ""},
		"a proxy's page":                   {awstest.Reply{Status: 502, Body: "<html>hunter2</html>"}, false, "502"},
		"no JSON":                          {value("hunter2"), true, "username and password"},
		"no password":                      {value(`{"username":"hunter2"}`), true, "username and password"},
		"another type":                     {value(`{"username":"lull","password":["hunter2"]}`), true, "username and password"},
		"binary": {
			awstest.Reply{Body: map[string]string{"SecretBinary": "aHVudGVyMg=="}},
			false,
			"as text",
		},
		"an incomplete answer": {awstest.Reply{Body: `{"SecretString":"hunter2`}, false, "as text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := scripted(t, func(int) awstest.Reply { return tt.reply })
			user, password, err := l.Credentials(awstest.Context(t))
			if err == nil || user != "" || password != "" {
				t.Fatalf("got %q, %q, %v, want an error", user, password, err)
			}
			if strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), arn) ||
				!strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v", err)
			}
			if backoff.Final(err) != tt.final {
				t.Errorf("final: got %v, want %v: %v", !tt.final, tt.final, err)
			}
		})
	}
}

func TestTheServiceIsInTheAccountsRegion(t *testing.T) {
	t.Parallel()
	for region, want := range map[string]string{
		"eu-west-1":  "https://secretsmanager.eu-west-1.amazonaws.com/",
		"cn-north-1": "https://secretsmanager.cn-north-1.amazonaws.com.cn/",
	} {
		if got := NewLogin(aws.Config{Region: region}, arn).endpoint(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestAKeyIsTheWholeSecretOrItsField(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"abc123\n":                      "abc123",
		`{"key":"abc123","engine":"x"}`: "abc123",
		`{"type":"service_account","private_key":"p"}`: `{"type":"service_account","private_key":"p"}`,
		`{"key":7}`: `{"key":7}`,
	} {
		k := NewKey(awstest.JSON(t, func(awstest.Call) awstest.Reply { return value(text) }), arn)
		if got, err := k.Get(awstest.Context(t)); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
	k := NewKey(awstest.JSON(t, func(awstest.Call) awstest.Reply { return value(" \n") }), arn)
	if _, err := k.Get(awstest.Context(t)); err == nil || !strings.Contains(err.Error(), "nothing but the key") {
		t.Errorf("an empty secret: got %v, want an error that says what a secret must contain", err)
	}
}
