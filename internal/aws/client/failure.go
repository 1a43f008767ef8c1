package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/lullhq/lull/internal/seam/backoff"
)

// Code is the code of an AWS error in one spelling: without a namespace, an old protocol's prefix
// or the ending Exception. It is empty for an error that no service sent.
// "com.amazonaws.sqs#MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight" and
// "MessageNotInflightException" are all MessageNotInflight.
func Code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return Normal(api.ErrorCode())
	}
	return ""
}

// Normal is Code for the code of one entry of a batch.
func Normal(code string) string {
	if i := strings.LastIndexAny(code, "#."); i >= 0 {
		code = code[i+1:]
	}
	return strings.TrimSuffix(code, "Exception")
}

// These codes say that the service refused the request before it did anything, because there were
// too many requests.
var throttles = []string{
	"Throttling", "ThrottledRequest", "ThrottlingError", "Throttled", "RequestThrottled", "RequestThrottledError",
	"RequestLimitExceeded",
	"ProvisionedThroughputExceeded", "TooManyRequests", "SlowDown", "BandwidthLimitExceeded", "ExecutionLimitExceeded",
	"KmsThrottled", "KmsThrottling", "KMSThrottling", "PriorRequestNotComplete", "TransactionConflict",
	"ReplicatedWriteConflict",
}

// These codes say that the caller lacks a permission, or that its credentials are not valid.
var denials = []string{
	"AccessDenied", "AuthorizationError", "UnauthorizedOperation", "UnrecognizedClient", "InvalidClientTokenId",
	"InvalidAccessKeyId",
	"SignatureDoesNotMatch", "InvalidSignature", "IncompleteSignature", "MissingAuthenticationToken", "ExpiredToken",
	"InvalidToken",
	"NotAuthorized", "OptInRequired", "Forbidden", "KmsAccessDenied", "KMSAccessDenied", "KmsDisabled", "KMSDisabled",
}

// Throttled reports whether a code, in the spelling of Code, says that nothing was done because
// there were too many requests.
func Throttled(code string) bool { return slices.Contains(throttles, code) }

// Denied reports whether a code, in the spelling of Code, says that permission or credentials are
// wrong. Trying again does not help.
func Denied(code string) bool { return slices.Contains(denials, code) }

// Final explains an error that another try cannot fix.
type Final struct {
	Says  string   // what is wrong and how to fix it, as it follows the subject
	Codes []string // in the spelling of Code; if empty, the codes of Denied
}

// Explain adds the subject to an error. The first of finals that has the error's code adds its
// text, and makes the error permanent for package backoff. A nil error stays nil.
func Explain(subject string, err error, finals ...Final) error {
	if err == nil {
		return nil
	}
	code := Code(err)
	for _, f := range finals {
		if slices.Contains(f.Codes, code) || len(f.Codes) == 0 && Denied(code) {
			return backoff.Permanent(fmt.Errorf("%s%s: %w", subject, f.Says, err))
		}
	}
	return fmt.Errorf("%s: %w", subject, err)
}
