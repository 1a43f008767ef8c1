package console

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/lullhq/lull/internal/terminal"
)

// AWS says what is missing in its own words: "User: arn:... is not authorized to perform:
// dynamodb:Query on resource: ...".
var missingRight = regexp.MustCompile(`is not authorized to perform:? ([a-zA-Z0-9-]+:[a-zA-Z0-9*]+)`)

// denied is the right that the caller lacks, such as dynamodb:Query; empty where the error is
// another one. AWS's error types are known by their methods: the console links no client of AWS.
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

// deniedCode knows the spellings of the services and of their emulators.
func deniedCode(code string) bool {
	switch code {
	case "AccessDenied", "AccessDeniedException", "AuthorizationError", "AuthorizationErrorException",
		"UnauthorizedOperation", "AWS.SimpleQueueService.AccessDenied", "Forbidden":
		return true
	}
	return false
}

// role is one of the roles that a stack makes for people.
type role string

const (
	reader    role = "reader"
	operator  role = "operator"
	publisher role = "publisher"
)

// sentence is an error for people, on one line: it may quote what a sender wrote. who has the
// rights that the request takes.
func sentence(err error, who role) string {
	if right := denied(err); right != "" {
		return fmt.Sprintf("Access denied: your role lacks %s. The stack's %s role has it (docs/deploy.md).", right, who)
	}
	return oneLine(err.Error())
}

// oneLine is a text on one line: errors that are joined have several.
func oneLine(text string) string { return terminal.Line(strings.ReplaceAll(text, "\n", "; ")) }
