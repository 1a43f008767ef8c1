// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/shard"
)

// envRuntime is the environment variable with Amazon's Runtime Interface Emulator, which
// localstack/setup.sh installs.
const envRuntime = "LULL_E2E_RIE"

// Runtime is Amazon's Runtime Interface Emulator, which runs the program of a function.
type Runtime struct{ address string }

// Emulate runs the deployed program of a function with its deployed settings, time-out and memory.
// Variables of changed replace those of the deployed environment.
func (s *Stack) Emulate(t testing.TB, f names.Function, changed map[string]string) *Runtime {
	t.Helper()
	folder, vars := s.deployed(t, f)
	maps.Copy(vars, changed)
	return emulate(t, filepath.Join(folder, "bootstrap"), vars)
}

// EmulateJob runs the program of the function job, which this stack does not have. The settings are
// those of the stack, with a canary.
func (s *Stack) EmulateJob(t testing.TB) *Runtime {
	t.Helper()
	folder, vars := s.deployed(t, names.Prune)
	settings, err := os.ReadFile(filepath.Join(folder, lambda.SettingsFile))
	Must(t, err)
	settings, err = sjson.SetBytes(settings, "canary.every", "15m0s")
	Must(t, err)
	root := t.TempDir()
	Must(t, os.WriteFile(filepath.Join(root, lambda.SettingsFile), settings, 0o600))
	vars["LAMBDA_TASK_ROOT"] = root
	vars["AWS_LAMBDA_FUNCTION_NAME"] = s.Names.Job()
	vars["AWS_LAMBDA_FUNCTION_TIMEOUT"] = fmt.Sprint(lambda.JobTimeout.Seconds())
	vars[lambda.EnvLiveQueues], vars[lambda.EnvBulkQueues] = s.Live, s.Bulk
	return emulate(t, filepath.Join(s.now.dist, "job", "bootstrap"), vars)
}

// deployed returns the folder with the program and the settings of a function of the stack, and its
// environment on AWS.
func (s *Stack) deployed(t testing.TB, f names.Function) (folder string, vars map[string]string) {
	t.Helper()
	var deployed struct {
		Timeout, MemorySize int
		Environment         struct{ Variables map[string]string }
	}
	s.Lambda(t, f, http.MethodGet, "/configuration", nil, &deployed)
	name := s.Names.Function(Sink, f)
	out := filepath.Join(s.Work, s.Config.Stack+".out")
	text, err := os.ReadFile(filepath.Join(out, s.Config.Stack+".template.json"))
	Must(t, err)
	for _, resource := range gjson.GetBytes(text, "Resources").ForEach {
		if resource.Get("Properties.FunctionName").Str == name {
			folder = filepath.Join(out, "asset."+strings.TrimSuffix(resource.Get("Properties.Code.S3Key").Str, ".zip"))
		}
	}
	vars = map[string]string{
		"AWS_LAMBDA_FUNCTION_NAME": name, "AWS_LAMBDA_FUNCTION_TIMEOUT": fmt.Sprint(deployed.Timeout),
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": fmt.Sprint(deployed.MemorySize), "LAMBDA_TASK_ROOT": folder,
		"AWS_REGION": s.Account.Region, envEndpoint: *s.Account.BaseEndpoint,
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	}
	maps.Copy(vars, deployed.Environment.Variables)
	return folder, vars
}

// EmulateFeed runs the program of the function inside the pipe of a commit feed. It needs no
// settings.
func (g *Ground) EmulateFeed(t testing.TB) *Runtime {
	t.Helper()
	vars := map[string]string{"AWS_LAMBDA_FUNCTION_TIMEOUT": "10"}
	return emulate(t, filepath.Join(g.now.dist, "feed", "bootstrap"), vars)
}

func emulate(t testing.TB, program string, vars map[string]string) *Runtime {
	t.Helper()
	emulator := os.Getenv(envRuntime)
	if emulator == "" {
		t.Skip("Amazon's Runtime Interface Emulator is not installed: localstack/setup.sh installs it")
	}
	ports := make([]net.Listener, 2)
	for i := range ports {
		var err error
		ports[i], err = net.Listen("tcp", "127.0.0.1:0")
		Must(t, err)
	}
	r := &Runtime{ports[0].Addr().String()}
	cmd := exec.Command(emulator, "--runtime-interface-emulator-address", r.address, "--runtime-api-address",
		ports[1].Addr().String(), program)
	for _, port := range ports {
		Must(t, port.Close())
	}
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH")}, t.TempDir()
	for name, value := range vars {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, 10*time.Second
	Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it ends the program then
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said\n%s", program, &said)
		}
	})
	Until(t, "the emulator of the runtime accepts connections", func() (bool, string) {
		c, err := net.Dial("tcp", r.address)
		if err != nil {
			return false, err.Error()
		}
		return c.Close() == nil, ""
	})
	return r
}

// Invoke invokes the function, and returns its answer or its error, as Lambda reports both.
func (r *Runtime) Invoke(t testing.TB, event []byte) ([]byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://"+r.address+"/2015-03-31/functions/function/invocations", bytes.NewReader(event))
	Must(t, err)
	status, _, answer, err := exchange(req)
	Must(t, err)
	var failed struct{ ErrorType, ErrorMessage string }
	if status != http.StatusOK {
		return nil, fmt.Errorf("status %d: %s", status, answer)
	}
	if json.Unmarshal(answer, &failed) == nil && failed.ErrorType+failed.ErrorMessage != "" {
		return nil, fmt.Errorf("%s: %s", failed.ErrorType, failed.ErrorMessage)
	}
	return answer, nil
}

// Batch invokes the function with messages, as an event source mapping does, and carries out the
// answer: it deletes the messages that the answer does not name. It returns how many are named.
// Lambda fails the whole batch for an answer of another form, and so does Batch.
func (r *Runtime) Batch(t testing.TB, s *Stack, queue string, msgs []types.Message) (kept int) {
	t.Helper()
	answer, err := r.Invoke(t, s.event(t, queue, msgs))
	Must(t, err)
	var a struct {
		BatchItemFailures *[]struct{ ItemIdentifier string }
	}
	strict := json.NewDecoder(bytes.NewReader(answer))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&a); err != nil || a.BatchItemFailures == nil {
		t.Fatalf("the answer %s does not fit an event source mapping: %v", answer, err)
	}
	for _, failure := range *a.BatchItemFailures {
		i := slices.IndexFunc(msgs, func(m types.Message) bool { return *m.MessageId == failure.ItemIdentifier })
		if i < 0 {
			t.Fatalf("the answer %s names a message twice, or one that is not in the batch", answer)
		}
		msgs = slices.Delete(slices.Clone(msgs), i, i+1)
	}
	for _, m := range msgs {
		_, err := s.SQS.DeleteMessage(t.Context(),
			&sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle})
		Must(t, err)
	}
	return len(*a.BatchItemFailures)
}

// Queue makes a queue that no function is mapped to, until the end of the test, and returns its
// URL. A message that was received stays invisible for ten minutes.
func (s *Stack) Queue(t testing.TB, name string) string {
	t.Helper()
	name = s.Config.Stack + "-" + name
	made, err := s.SQS.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: &name, Attributes: map[string]string{"VisibilityTimeout": "600"},
	})
	Must(t, err)
	t.Cleanup(func() {
		_, err := s.SQS.DeleteQueue(context.WithoutCancel(t.Context()), &sqs.DeleteQueueInput{QueueUrl: made.QueueUrl})
		if err != nil {
			t.Error(err)
		}
	})
	return *made.QueueUrl
}

// Taken sends messages with these bodies to a queue, and receives them as an event source mapping
// does. If a send is repeated, because its answer was late, Taken deletes the second copies.
func (s *Stack) Taken(t testing.TB, queue string, bodies ...string) (msgs []types.Message) {
	t.Helper()
	Must(t, s.send(t.Context(), queue, bodies))
	taken := make(map[string]bool)
	Until(t, fmt.Sprintf("%d messages are received from %s", len(bodies), queue), func() (bool, string) {
		out, err := s.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &queue, MaxNumberOfMessages: batch,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
			MessageAttributeNames:       []string{"All"},
		})
		Must(t, err)
		for _, m := range out.Messages {
			if taken[*m.Body] {
				_, err := s.SQS.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{
					QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle,
				})
				Must(t, err)
				continue
			}
			taken[*m.Body] = true
			msgs = append(msgs, m)
		}
		return len(msgs) == len(bodies), fmt.Sprint(len(msgs))
	})
	return msgs
}

// event returns messages as an event source mapping hands them to a function.
func (s *Stack) event(t testing.TB, queue string, msgs []types.Message) []byte {
	t.Helper()
	records := make([]map[string]any, len(msgs))
	source := "arn:aws:sqs:" + s.Account.Region + ":" + s.AccountID + ":" + queue[strings.LastIndex(queue, "/")+1:]
	for i, m := range msgs {
		attributes := make(map[string]any)
		for name, a := range m.MessageAttributes {
			attributes[name] = map[string]any{
				"dataType": a.DataType, "stringValue": a.StringValue, "binaryValue": a.BinaryValue,
			}
		}
		records[i] = map[string]any{
			"messageId": m.MessageId, "receiptHandle": m.ReceiptHandle, "body": m.Body, "md5OfBody": m.MD5OfBody,
			"attributes": m.Attributes, "messageAttributes": attributes, "eventSource": "aws:sqs",
			"eventSourceARN": source, "awsRegion": s.Account.Region,
		}
	}
	text, err := json.Marshal(map[string]any{"Records": records})
	Must(t, err)
	return text
}

// Inserted returns rows as a pipe hands them to the commit feed: as new records of the table's
// stream.
func (s *Stack) Inserted(t testing.TB, keys ...shard.DocID) []byte {
	t.Helper()
	records := make([]map[string]any, 0, len(keys))
	for _, key := range keys {
		id := map[string]any{dynamodb.PartitionKey: map[string]any{"S": string(key)}}
		var row struct{ Item map[string]any }
		Must(t, s.target(t.Context(), "dynamodb", "DynamoDB_20120810.GetItem",
			map[string]any{"TableName": s.Names.Table(), "Key": id, "ConsistentRead": true}, &row))
		records = append(records, map[string]any{
			"eventName": "INSERT", "eventSource": "aws:dynamodb", "eventVersion": "1.1", "awsRegion": s.Account.Region,
			"dynamodb": map[string]any{
				"ApproximateCreationDateTime": time.Now().Unix(), "Keys": id, "NewImage": row.Item,
				"StreamViewType": "NEW_AND_OLD_IMAGES",
			},
		})
	}
	text, err := json.Marshal(records)
	Must(t, err)
	return text
}
