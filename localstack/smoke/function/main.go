// Command function is the bootstrap that the smoke check deploys: one program for every question
// that the check asks of a Lambda backend. It calls no AWS service.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// request is either a batch of SQS records or a direct call. Mode says what the direct call does:
// "" answers, "error" returns an error, "exit" ends the process, "sleep" waits Millis first.
type request struct {
	Records []events.SQSMessage `json:"Records"`
	Mode    string              `json:"mode"`
	Millis  int                 `json:"millis"`
	Echo    json.RawMessage     `json:"echo,omitempty"`
}

// answer is what a direct call gets back.
type answer struct {
	Pid         int             `json:"pid"`
	Setting     string          `json:"setting"`
	Function    string          `json:"function"`
	RemainingMs int64           `json:"remaining_ms"`
	Echo        json.RawMessage `json:"echo,omitempty"`
}

func handle(ctx context.Context, in request) (any, error) {
	if in.Records != nil {
		return batch(in.Records), nil
	}
	switch in.Mode {
	case "error":
		return nil, errors.New("asked to fail")
	case "exit":
		os.Exit(3)
	case "sleep":
		time.Sleep(time.Duration(in.Millis) * time.Millisecond)
	}
	deadline, _ := ctx.Deadline()
	fmt.Println("smoke: direct call", string(in.Echo))
	return answer{
		Pid:         os.Getpid(),
		Setting:     os.Getenv("SMOKE_SETTING"),
		Function:    lambdacontext.FunctionName,
		RemainingMs: time.Until(deadline).Milliseconds(),
		Echo:        in.Echo,
	}, nil
}

// batch reports as failed each record that asks for it: "poison" at every receive, "retry" at the
// first. It prints what it saw, quoted: the check compares bodies byte for byte.
func batch(records []events.SQSMessage) events.SQSEventResponse {
	var out events.SQSEventResponse
	for _, r := range records {
		count := r.Attributes["ApproximateReceiveCount"]
		fmt.Printf("smoke: record %s %q\n", count, r.Body)
		if strings.Contains(r.Body, "poison") || strings.Contains(r.Body, "retry") && count == "1" {
			out.BatchItemFailures = append(out.BatchItemFailures,
				events.SQSBatchItemFailure{ItemIdentifier: r.MessageId})
		}
	}
	return out
}

func main() { lambda.Start(handle) }
