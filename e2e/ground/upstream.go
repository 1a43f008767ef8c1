// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/lullhq/lull/internal/aws/sqs"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/source"
)

// Event is a change that an upstream system sends.
type Event struct {
	Collection, ID string
	Version        int
	Delete         bool
	Data           map[string]any // the document; if it is nil, the document is a title that names the version
	Ref            string         // the address of the document, instead of Data
	NotBefore      time.Time
}

// Body returns the event as the body of a message: CloudEvents in JSON.
func (e Event) Body() string {
	body := map[string]any{
		"specversion": "1.0", "id": fmt.Sprintf("%s/%s/%d", e.Collection, e.ID, e.Version), "source": "/e2e",
		"type":       "doc.changed",
		"collection": e.Collection, "subject": e.ID, "sequence": strconv.Itoa(e.Version), "sequencetype": "int",
	}
	switch {
	case e.Delete:
		body["type"] = "doc.deleted"
	case e.Ref != "":
		body["type"], body["dataref"] = "doc.touched", e.Ref
	case e.Data != nil:
		body["data"] = e.Data
	default:
		body["data"] = map[string]any{"title": fmt.Sprintf("version %d", e.Version)}
	}
	if !e.NotBefore.IsZero() {
		body["notbefore"] = e.NotBefore.UTC().Format(time.RFC3339Nano)
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // cannot happen: texts and numbers can always be encoded in JSON
	}
	return string(text)
}

// batch is how many messages SNS, EventBridge and SQS accept in one request.
const batch = 10

// Direct sends events to the live queue.
func (s *Stack) Direct(t testing.TB, events ...Event) {
	t.Helper()
	Must(t, s.Send(t.Context(), events))
}

// DirectBodies sends messages with any bodies to the live queue.
func (s *Stack) DirectBodies(t testing.TB, bodies ...string) {
	t.Helper()
	Must(t, s.send(t.Context(), s.Live, bodies))
}

// Undeliverable sends a message to the dead-letter queue, like a service that cannot deliver the
// message.
func (s *Stack) Undeliverable(t testing.TB, body string) {
	t.Helper()
	Must(t, s.send(t.Context(), s.Dead, []string{body}))
}

// Store stores an event as a scheduled event, as receive does with an event that is due much later.
func (s *Stack) Store(t testing.TB, e Event) {
	t.Helper()
	sources, err := source.New(s.Config)
	Must(t, err)
	m := queue.Message{ID: "stored-by-a-test", Body: e.Body(), Sent: time.Now()}
	decoded := sources.Decode(m)
	if len(decoded) != 1 || decoded[0].Invalid != nil {
		t.Fatalf("decode %s: %+v", m.Body, decoded)
	}
	ev := decoded[0].Event
	Must(t, s.Schedule.Put(t.Context(), schedule.Item{
		ID: deadletter.ID(ev.Doc, ev.Key, ""), Doc: ev.Doc, Key: ev.Key, NotBefore: ev.NotBefore, Sink: Sink,
		Lane: flight.Live, FirstSent: m.Sent, MessageID: m.ID, Body: m.Body,
	}))
}

// Publish sends events to the SNS topic.
func (s *Stack) Publish(t testing.TB, events ...Event) {
	t.Helper()
	Must(t, s.publish(t.Context(), bodies(events)))
}

// PublishBodies sends messages with any bodies to the SNS topic.
func (s *Stack) PublishBodies(t testing.TB, bodies ...string) {
	t.Helper()
	Must(t, s.publish(t.Context(), bodies))
}

// Put sends events to the EventBridge bus.
func (s *Stack) Put(t testing.TB, events ...Event) { t.Helper(); Must(t, s.put(t.Context(), events)) }

// Spread sends events by SNS, EventBridge and SQS at the same time, a third of the events by each.
func (s *Stack) Spread(t testing.TB, events ...Event) {
	t.Helper()
	topic := func(ctx context.Context, events []Event) error { return s.publish(ctx, bodies(events)) }
	ways := []func(context.Context, []Event) error{s.Send, topic, s.put}
	parts, errs := make([][]Event, len(ways)), make([]error, len(ways))
	for i, e := range events {
		parts[i%len(ways)] = append(parts[i%len(ways)], e)
	}
	var all sync.WaitGroup
	for i, send := range ways {
		all.Go(func() { errs[i] = send(t.Context(), parts[i]) })
	}
	all.Wait()
	Must(t, errors.Join(errs...))
}

// Wrapped publishes texts to an SNS topic. The topic delivers them to the live queue in an
// envelope, because its subscription has no raw delivery.
func (s *Stack) Wrapped(t testing.TB, topic string, texts ...string) {
	t.Helper()
	arn, err := s.topic(t.Context(), s.Config.Stack+"-"+topic)
	Must(t, err)
	_, err = s.Query(t.Context(), "sns", "2010-03-31", "Subscribe", url.Values{
		"TopicArn": {arn}, "Protocol": {"sqs"}, "Endpoint": {s.liveARN()},
	})
	Must(t, err)
	for _, text := range texts {
		_, err := s.Query(t.Context(), "sns", "2010-03-31", "Publish", url.Values{"TopicArn": {arn}, "Message": {text}})
		Must(t, err)
	}
}

func (s *Stack) liveARN() string {
	return "arn:aws:sqs:" + s.Account.Region + ":" + s.AccountID + ":" + s.Names.Queue(Sink, flight.Live)
}

// Notify makes a bucket of the stack send a notification of every change to the live queue. The
// method Object uses the bucket exports.
func (s *Stack) Notify(t testing.TB, name string) {
	t.Helper()
	bucket := s.bucketOf(s.Config.Stack, name)
	made := s.Bucket(t.Context(), bucket) // creates the bucket for its first object
	_, err := s.Files().PutBucketNotificationConfiguration(t.Context(), &s3.PutBucketNotificationConfigurationInput{
		Bucket: &bucket, NotificationConfiguration: &types.NotificationConfiguration{
			QueueConfigurations: []types.QueueConfiguration{{
				QueueArn: aws.String(s.liveARN()), Events: []types.Event{"s3:ObjectCreated:*", "s3:ObjectRemoved:*"},
			}},
		},
	})
	if err != nil {
		t.Fatal("set the notifications of the bucket: ", errors.Join(err, made))
	}
}

// ToArchive sends events to the live queue of the second sink.
func (s *Stack) ToArchive(t testing.TB, events ...Event) {
	t.Helper()
	var live string
	Must(t, s.Find(t.Context(), map[string]*string{s.Names.Queue(Archive, flight.Live): &live}))
	Must(t, s.send(t.Context(), live, bodies(events)))
}

// Object puts a file into the bucket of exports, and returns its s3:// address.
func (s *Stack) Object(t testing.TB, key, text string) string {
	t.Helper()
	return s.ObjectIn(t, "exports", key, text)
}

// ObjectIn is Object for another bucket of the stack.
func (s *Stack) ObjectIn(t testing.TB, name, key, text string) string {
	t.Helper()
	bucket := s.bucketOf(s.Config.Stack, name)
	made := s.Bucket(t.Context(), bucket) // creates the bucket for its first object
	if _, err := s.Files().PutObject(t.Context(),
		&s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(text)}); err != nil {
		t.Fatal("put an export: ", errors.Join(err, made))
	}
	return "s3://" + bucket + "/" + key
}

// Files returns a client for the account's buckets.
func (g *Ground) Files() *s3.Client {
	return s3.NewFromConfig(g.Account, func(o *s3.Options) { o.UsePathStyle = true })
}

// Bucket makes a bucket. An error may only mean that the bucket exists: report it if a use fails.
func (g *Ground) Bucket(ctx context.Context, name string) error {
	in := &s3.CreateBucketInput{Bucket: &name}
	if region := g.Account.Region; region != "us-east-1" { // S3 refuses us-east-1 here, and needs any other region
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{
			LocationConstraint: types.BucketLocationConstraint(region),
		}
	}
	_, err := g.Files().CreateBucket(ctx, in)
	return err
}

// Must ends the test if a step of the test failed.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Send is Direct, but returns an error. It may be called after the test has ended.
func (s *Stack) Send(ctx context.Context, events []Event) error {
	return s.send(ctx, s.Live, bodies(events))
}

func bodies(events []Event) (all []string) {
	for _, e := range events {
		all = append(all, e.Body())
	}
	return all
}

func (s *Stack) send(ctx context.Context, queueURL string, bodies []string) error {
	out := make([]queue.Outgoing, len(bodies))
	for i, body := range bodies {
		out[i] = queue.Outgoing{Body: body}
	}
	if err := errors.Join(sqs.New(s.Account, queueURL).Send(ctx, out)...); err != nil {
		return fmt.Errorf("send to %s: %w", queueURL, err)
	}
	return nil
}

func (s *Stack) publish(ctx context.Context, bodies []string) error {
	for part := range slices.Chunk(bodies, batch) {
		form := url.Values{"TopicArn": {s.Topic}}
		for i, body := range part {
			entry := fmt.Sprintf("PublishBatchRequestEntries.member.%d.", i+1)
			form.Set(entry+"Id", strconv.Itoa(i))
			form.Set(entry+"Message", body)
		}
		if _, err := s.Query(ctx, "sns", "2010-03-31", "PublishBatch", form); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stack) put(ctx context.Context, events []Event) error {
	for part := range slices.Chunk(events, batch) {
		var entries []map[string]any
		for _, e := range part {
			entries = append(entries, map[string]any{
				"EventBusName": s.Bus, "Source": EventSource,
				"DetailType": "changed", "Detail": e.Body(),
			})
		}
		var answer struct{ FailedEntryCount int }
		if err := s.target(ctx, "events", "AWSEvents.PutEvents", map[string]any{"Entries": entries},
			&answer); err != nil {
			return err
		}
		if answer.FailedEntryCount > 0 {
			return fmt.Errorf("put events: %d of %d failed", answer.FailedEntryCount, len(part))
		}
	}
	return nil
}
