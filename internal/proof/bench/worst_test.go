// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/lambda"
	lullmetrics "github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/aws/sqs"
	"github.com/lullhq/lull/internal/aws/stepfunctions"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source"
)

// Limits of a batch: a synchronous payload of Lambda, and a message of SQS.
const (
	payloadBytes = 6 << 20
	bodyBytes    = queue.MaxBytes
)

// hostile is a sender's worst message, each with another number, and the source that it names.
type hostile struct {
	name   string
	source string
	body   func(n int) string
	most   int // messages in a batch, 0 for as many as fit
}

// fill repeats items inside a frame up to so many bytes, and at most so many times.
func fill(head, item, tail string, bytes, most int) string {
	n := min((bytes-len(head)-len(tail))/(len(item)+1), most)
	return head + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + tail
}

func rabbit(body string) string {
	return `{"basicProperties":{},"data":"` + base64.StdEncoding.EncodeToString([]byte(body)) + `"}`
}

func rabbits(n int, body func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = rabbit(body(i))
	}
	return `{"rmqMessagesByQueue":{"q::/":[` + strings.Join(all, ",") + `]}}`
}

func inSNS(body string) string {
	text, _ := json.Marshal(body) //nolint:errchkjson // a text
	return `{"Type":"Notification","TopicArn":"arn:aws:sns:us-east-1:1:t","Message":` + string(text) + `}`
}

func deletion(id string) string {
	return `{"type":"doc.deleted","subject":"` + id + `","sequence":"1"}`
}

// members is an object with as many members as so many bytes hold.
func members(n, bytes int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"content_id":"%d"`, n)
	for i := 0; b.Len() < bytes-20; i++ {
		fmt.Fprintf(&b, `,"%x":1`, i)
	}
	return b.String() + `}`
}

func manyHeaders(bytes int) string {
	return fill(`{"basicProperties":{"headers":{`, `"a":1`, `}},"data":"e30="}`, bytes, 1<<20)
}

const s3Record = `{"eventSource":"aws:s3"}`

// hostiles are the most expensive messages of a sender that we found. Every one is accepted: each
// message is held, waits, or becomes a dead letter.
var hostiles = []hostile{
	{name: "single events", body: func(n int) string { return deletion(fmt.Sprint("doc-", n)) }},
	{name: "large events", body: func(n int) string {
		return fmt.Sprintf(`{"type":"doc.changed","subject":"%d","sequence":"1","data":{"t":"%s"}}`, n,
			strings.Repeat("x", bodyBytes-100))
	}},
	{name: "300 KB of faulty records", source: "s3", body: func(int) string {
		return fill(`{"Records":[`, s3Record, `]`, 299<<10, 500) + strings.Repeat(" ", 280<<10) + "}"
	}},
	{name: "smallest faulty records", source: "s3", body: func(int) string {
		return fill(`{"Records":[`+s3Record+`,`, "1", `]}`, bodyBytes, 499)
	}},
	{name: "too many records", source: "s3", body: func(int) string {
		return fill(`{"Records":[`+s3Record+`,`, "1", `]}`, bodyBytes, 1<<20)
	}},
	{name: "deletes by the hundred", body: func(n int) string {
		return rabbits(500, func(i int) string { return deletion(fmt.Sprintf("%d-%d", n, i)) })
	}},
	{name: "deletes by the five", body: func(n int) string {
		return rabbits(5, func(i int) string { return deletion(fmt.Sprintf("%d-%d", n, i)) })
	}},
	{name: "long ids", body: func(n int) string {
		return rabbits(200, func(i int) string { return deletion(fmt.Sprintf("%0500d", n*1000+i)) })
	}},
	{name: "versions of another class", body: func(n int) string {
		return rabbits(10, func(i int) string {
			return fmt.Sprintf(`{"type":"doc.deleted","subject":"other-%d-%d","sequence":"1","sequencetype":"lex"}`, n, i)
		})
	}},
	{name: "deep", body: func(int) string {
		return fill(`{"data":[`, strings.Repeat("[", 250)+strings.Repeat("]", 250), `]}`, bodyBytes, 1<<20)
	}},
	{name: "too deep", body: func(int) string { return strings.Repeat("[", bodyBytes) }},
	{name: "broken at the end", body: func(int) string { return `{"a":[` + strings.Repeat("1,", bodyBytes/2-10) + "]" }},
	{name: "a huge number", body: func(n int) string {
		return fmt.Sprintf(`{"type":"doc.deleted","subject":"%d","sequence":%s}`, n, strings.Repeat("9", bodyBytes-100))
	}},
	{name: "escaped names", body: func(int) string {
		return fill(`{`, "\"\\u0061\\u0062\":1", `}`, bodyBytes*3/4, 1<<20)
	}},
	{name: "many members", source: "govuk", body: func(n int) string { return members(n, bodyBytes*3/4) }},
	{name: "a key of many columns", source: "debezium", body: func(n int) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{"value":{"op":"d"},"key":{"_":"%d"`, n)
		for i := 0; b.Len() < bodyBytes*3/4; i++ {
			fmt.Fprintf(&b, `,"%x":1`, i)
		}
		return b.String() + `}}`
	}},
	{name: "SNS in SNS", body: func(n int) string {
		return inSNS(inSNS(inSNS(inSNS(fmt.Sprintf(`{"type":"doc.deleted","subject":"%d","sequence":"1","x":"%s"}`, n,
			strings.Repeat("x", bodyBytes*9/10))))))
	}},
	{name: "headers", body: func(n int) string {
		return fill(`{"basicProperties":{"headers":{"a":{"bytes":[`, "104", `]}}},"data":"e30="}`, bodyBytes, 1<<20)
	}},
	{name: "many headers", body: func(int) string { return manyHeaders(bodyBytes) }},
	{name: "many attributes of SNS", body: func(int) string {
		return fill(`{"Type":"Notification","TopicArn":"arn:aws:sns:us-east-1:1:t","Message":"{}","MessageAttributes":{`,
			`"a":1`, `}}`, bodyBytes*3/4, 1<<20)
	}},
	{name: "RabbitMQ in RabbitMQ", body: func(n int) string {
		return rabbits(20, func(i int) string {
			return rabbits(25, func(j int) string { return deletion(fmt.Sprintf("%d-%d-%d", n, i, j)) })
		})
	}},
	{name: "half surrogates", body: func(n int) string {
		return fmt.Sprintf(`{"type":"doc.deleted","sequence":"1","subject":"%d%s"}`, n, strings.Repeat(`\ud800`, bodyBytes/8))
	}},
	{name: "scheduled", body: func(n int) string {
		return rabbits(10, func(i int) string {
			return fmt.Sprintf(`{"type":"doc.deleted","subject":"%d-%d","sequence":"1","notbefore":%q}`, n, i,
				time.Now().Add(10*time.Minute).Format(time.RFC3339))
		}) + strings.Repeat(" ", 100<<10)
	}},
	{name: "pointers to 5 MB", most: 1000, body: func(n int) string {
		return fmt.Sprintf(`["x.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"%d"}]`, n%4)
	}},
	{name: "pointers to many members", source: "govuk", most: 1000, body: func(n int) string {
		return fmt.Sprintf(`["x.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"members-%d"}]`, n%4)
	}},
	{name: "pointers to many headers", most: 1000, body: func(n int) string {
		return fmt.Sprintf(`["x.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"headers-%d"}]`, n%4)
	}},
	{name: "pointers to SNS in SNS", most: 1000, body: func(n int) string {
		return fmt.Sprintf(`["x.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"sns-%d"}]`, n%4)
	}},
}

// batch is the payload of one invocation: as many of the messages as the mapping would send.
func (h hostile) batch(t testing.TB, begin int) []byte {
	var b strings.Builder
	b.WriteString(`{"Records":[`)
	sent := time.Now().UnixMilli()
	for n := begin; ; n++ {
		body, err := json.Marshal(h.body(n))
		check(t, err)
		attributes := ""
		if h.source != "" {
			attributes = `"lull-source":{"stringValue":"` + h.source + `","dataType":"String"}`
		}
		r := fmt.Sprintf(`{"messageId":"%036d","receiptHandle":"%0400d","body":%s,"attributes":{"SentTimestamp":"%d",`+
			`"ApproximateReceiveCount":"1","SenderId":"AROAEXAMPLE","ApproximateFirstReceiveTimestamp":"%[4]d"},`+
			`"messageAttributes":{%s},"md5OfBody":"%032d","eventSource":"aws:sqs",`+
			`"eventSourceARN":"arn:aws:sqs:us-east-1:123456789012:live","awsRegion":"us-east-1"}`,
			n, n, body, sent, attributes, n)
		if n > begin && (b.Len()+len(r) > payloadBytes || n-begin == max(h.most, 1000)) {
			break
		}
		if n > begin {
			b.WriteByte(',')
		}
		b.WriteString(r)
	}
	return []byte(b.String() + `]}`)
}

// newReceive is the function receive as it is deployed, in front of clients whose requests are
// answered in this process.
func newReceive(t testing.TB) (*lambda.Queues, *inprocess) {
	net := newInprocess()
	account := net.config()
	cfg := base().config(t)
	for _, kind := range []string{"s3", "govuk", "debezium"} {
		cfg.Sources[kind] = config.Source{Kind: kind, Collection: "content", Match: []source.Match{{Named: true}}}
	}
	cfg.DefaultSource = "native"
	cfg.Payload.Allow = []config.BucketPrefix{{Bucket: "b"}}
	cfg.Complete()
	table, bucket := dynamodb.New(account, "shards"), s3.New(account, "lull")
	for i := range 4 {
		net.objects[fmt.Sprintf("/b/%d", i)] = []byte(deletion(fmt.Sprint("pointed-", i)) + strings.Repeat(" ", 5<<20-100))
		net.objects[fmt.Sprintf("/b/sns-%d", i)] = []byte(inSNS(inSNS(inSNS(deletion(fmt.Sprint("in-sns-", i)) +
			strings.Repeat("x", 5<<20-2000)))))
		net.objects[fmt.Sprintf("/b/headers-%d", i)] = []byte(manyHeaders(5<<20 - 100))
		net.objects[fmt.Sprintf("/b/members-%d", i)] = []byte(members(i, 5<<20-100))
	}
	log := lambda.NewJournal(io.Discard, slog.LevelInfo,
		lullmetrics.Base{Stack: "s", Sink: sinkName, Function: "receive"})
	queue := sqs.New(account, "https://sqs.us-east-1.amazonaws.com/123456789012/live")
	h := halves{
		config: cfg, sources: newSources(t, cfg).WithLoader(bucket.Load), rows: sdkRows{table},
		flights: s3.NewFlights(bucket), clk: clock.System{}, live: queue, dead: queue,
		launcher: stepfunctions.New(account, stepfunctions.Machines{Express: "arn:aws:states:us-east-1:123456789012:stateMachine:flight"}),
		schedule: dynamodb.NewSchedule(table, s3.NewBodies(bucket, s3.SchedulePrefix)),
	}.receiver()
	h.Journal = log
	return &lambda.Queues{
		Handles: map[string]lambda.Handle{"live": h.Handle}, Limit: cfg.Receive.Timeout, Journal: log,
	}, net
}

// peak watches the memory that the process has from the system, above what it began with.
func peak(f func()) (bytes uint64) {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	used := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64() - sample[1].Value.Uint64()
	}
	debug.FreeOSMemory()
	began := used()
	var most atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			most.Store(max(most.Load(), used()))
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	<-ended
	return most.Load() - min(began, most.Load())
}

// BenchmarkWorstBatch measures what the most expensive batches cost receive. With 512 MB a function
// has 0.29 of a processor, 1.7 s of its six: an invocation may take 1.5 s of processor time, and
// 300 MB of memory.
func BenchmarkWorstBatch(b *testing.B) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(lambda.MemoryLimit(512)))
	for _, h := range hostiles {
		b.Run(strings.ReplaceAll(h.name, " ", "-"), func(b *testing.B) {
			q, _ := newReceive(b)
			var spent time.Duration
			var most uint64
			for round := 0; b.Loop(); round++ {
				b.StopTimer()
				payload := h.batch(b, round*10_000)
				runtime.GC()
				b.StartTimer()
				began := processorTime(b)
				most = max(most, peak(func() {
					_, err := q.Invoke(context.Background(), payload)
					check(b, err)
				}))
				spent += processorTime(b) - began
			}
			b.ReportMetric(spent.Seconds()*1000/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(most)/(1<<20), "MB-peak")
		})
	}
}
