// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/lullhq/lull/internal/seam/backoff"
)

// Code returns the code of an AWS error in one spelling: without a namespace, without the prefix of
// an old protocol and without the ending Exception. The code is empty for an error that no service
// sent. "com.amazonaws.sqs#MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight" and
// "MessageNotInflightException" all become MessageNotInflight.
func Code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return Normal(api.ErrorCode())
	}
	return ""
}

// Normal converts an error code, such as that of one entry of a batch, into the spelling of Code.
func Normal(code string) string {
	if i := strings.LastIndexAny(code, "#."); i >= 0 {
		code = code[i+1:]
	}
	return strings.TrimSuffix(code, "Exception")
}

// throttles lists codes which say that the service did nothing, because there were too many
// requests.
var throttles = []string{
	"Throttling", "ThrottledRequest", "ThrottlingError", "Throttled", "RequestThrottled", "RequestThrottledError",
	"RequestLimitExceeded",
	"ProvisionedThroughputExceeded", "TooManyRequests", "SlowDown", "BandwidthLimitExceeded", "ExecutionLimitExceeded",
	"KmsThrottled", "KmsThrottling", "KMSThrottling", "PriorRequestNotComplete", "TransactionConflict",
	"ReplicatedWriteConflict",
}

// denials lists codes which say that the caller lacks a permission, or that its credentials are not
// valid.
var denials = []string{
	"AccessDenied", "AuthorizationError", "UnauthorizedOperation", "UnrecognizedClient", "InvalidClientTokenId",
	"InvalidAccessKeyId",
	"SignatureDoesNotMatch", "InvalidSignature", "IncompleteSignature", "MissingAuthenticationToken", "ExpiredToken",
	"InvalidToken",
	"NotAuthorized", "OptInRequired", "Forbidden", "KmsAccessDenied", "KMSAccessDenied", "KmsDisabled", "KMSDisabled",
}

// Throttled reports whether a code, in the spelling of Code, says that the service did nothing
// because there were too many requests.
func Throttled(code string) bool { return slices.Contains(throttles, code) }

// Denied reports whether a code, in the spelling of Code, says that a permission is missing or
// credentials are wrong. A retry does not help.
func Denied(code string) bool { return slices.Contains(denials, code) }

// Final explains an error that a retry cannot fix.
type Final struct {
	Says  string   // what is wrong and how to fix the error; Explain writes this text after the subject
	Codes []string // the codes of the error, in the spelling of Code; empty means the codes of Denied
}

// Explain adds the subject to the text of an error. If one of finals has the error's code, Explain
// also adds its text, and makes the error permanent for package backoff. A nil error stays nil.
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
