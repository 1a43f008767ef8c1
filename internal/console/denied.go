package console

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/lullhq/lull/internal/terminal"
)

// AWS says in the error's text which right is missing: "User: arn:... is not authorized to perform:
// dynamodb:Query on resource: ...".
var missingRight = regexp.MustCompile(`is not authorized to perform:? ([a-zA-Z0-9-]+:[a-zA-Z0-9*]+)`)

// denied returns the right that the caller lacks, such as dynamodb:Query. It is empty for any other
// error. It recognises AWS's errors by their methods, because the console links no AWS client.
func denied(err error) string {
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

// sentence is an error for users, on one line, because it may quote a sender's text. who is the
// role that has the rights for the request.
func sentence(err error, who role) string {
	if right := denied(err); right != "" {
		return fmt.Sprintf("Access denied: your role lacks %s. The stack's %s role has it (docs/deploy.md).", right, who)
	}
	return oneLine(err.Error())
}

// oneLine puts a text on one line. Joined errors have several.
func oneLine(text string) string { return terminal.Line(strings.ReplaceAll(text, "\n", "; ")) }
