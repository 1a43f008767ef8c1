// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/lullhq/lull/internal/terminal"
)

// missingRight finds the missing right in the text of an AWS error: "User: arn:... is not
// authorized to perform: dynamodb:Query on resource: ...".
var missingRight = regexp.MustCompile(`is not authorized to perform:? ([a-zA-Z0-9-]+:[a-zA-Z0-9*]+)`)

// rightLacked returns the right that the caller lacks, such as dynamodb:Query. For any other error,
// it returns "". It recognises AWS's errors by their methods, because the console links no AWS
// client.
func rightLacked(err error) string {
	var api interface {
		error
		ErrorCode() string
		ErrorMessage() string
	}
	if !errors.As(err, &api) || !deniedCode(api.ErrorCode()) {
		return ""
	}
	if m := missingRight.FindStringSubmatch(api.ErrorMessage()); m != nil {
		return m[1]
	}
	var op interface {
		error
		Service() string
		Operation() string
	}
	if errors.As(err, &op) {
		return strings.ToLower(op.Service()) + ":" + op.Operation()
	}
	return "an unnamed right"
}

// deniedCode reports whether an error code of AWS or of an emulator means that access is denied.
func deniedCode(code string) bool {
	switch code {
	case "AccessDenied", "AccessDeniedException", "AuthorizationError", "AuthorizationErrorException",
		"UnauthorizedOperation", "AWS.SimpleQueueService.AccessDenied", "Forbidden":
		return true
	}
	return false
}

// role is a role that a stack makes for users.
type role string

const (
	reader    role = "reader"
	operator  role = "operator"
	publisher role = "publisher"
)

// errorText returns an error as a text for users. The text is on one line, because it may quote a
// sender's text. The argument who is the role that has the rights for the request.
func errorText(err error, who role) string {
	if right := rightLacked(err); right != "" {
		return fmt.Sprintf("Access denied: your role lacks %s. The stack's %s role has it (docs/deploy.md).", right, who)
	}
	return oneLine(err.Error())
}

// oneLine puts a text on one line. A joined error has one line for each error.
func oneLine(text string) string { return terminal.Line(strings.ReplaceAll(text, "\n", "; ")) }
