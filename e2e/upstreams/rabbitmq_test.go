// SPDX-License-Identifier: Apache-2.0

//go:build e2eupstreams

package upstreams

import (
	"bufio"
	"crypto/md5" //nolint:gosec // SQS's own checksum
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
)

// rabbit is the RabbitMQ server of these tests.
type rabbit struct {
	port int
	at   string
}

func rabbitmq(t testing.TB) rabbit {
	t.Helper()
	port, err := strconv.Atoi(variable(t, "LULL_E2E_RABBITMQ"))
	ground.Must(t, err)
	return rabbit{port, fmt.Sprintf("127.0.0.1:%d", port)}
}

func address(at string) string { return "amqp://guest:guest@" + at + "/" }

// withChannel opens a connection and a channel, calls f, and closes the connection.
func (r rabbit) withChannel(t testing.TB, f func(*amqp.Channel) error) {
	t.Helper()
	c, err := amqp.Dial(address(r.at))
	ground.Must(t, err)
	defer c.Close()
	ch, err := c.Channel()
	if err == nil {
		err = f(ch)
	}
	ground.Must(t, err)
}

// queues declares empty, durable queues. Only the queue bound is bound to GOV.UK's exchange.
func (r rabbit) queues(t testing.TB, bound string, others ...string) {
	t.Helper()
	r.withChannel(t, func(ch *amqp.Channel) error {
		if err := ch.ExchangeDeclare(exchange, "topic", true, false, false, false, nil); err != nil {
			return err
		}
		for _, name := range append([]string{bound}, others...) {
			if _, err := ch.QueueDeclare(name, true, false, false, false, nil); err != nil {
				return err
			}
			if _, err := ch.QueuePurge(name, false); err != nil {
				return err
			}
		}
		return ch.QueueBind(bound, "#", exchange, false, nil)
	})
}

const exchange = "published_documents"

// publish sends messages, and returns once RabbitMQ has them on its disk.
func (r rabbit) publish(t testing.TB, all []amqp.Publishing, keys []string) {
	t.Helper()
	r.withChannel(t, func(ch *amqp.Channel) error {
		if err := ch.Confirm(false); err != nil {
			return err
		}
		var last []*amqp.DeferredConfirmation
		for i, m := range all {
			m.DeliveryMode = amqp.Persistent
			sent, err := ch.PublishWithDeferredConfirm(exchange, keys[i], false, false, m)
			if err != nil {
				return err
			}
			last = append(last, sent)
		}
		for i, sent := range last {
			if !sent.Wait() {
				return fmt.Errorf("RabbitMQ does not take message %d", i)
			}
		}
		return nil
	})
}

// count returns how many messages wait in a queue. Messages that a connection has received count
// only after the connection was closed.
func (r rabbit) count(t testing.TB, name string) (n int) {
	t.Helper()
	r.withChannel(t, func(ch *amqp.Channel) error {
		q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		n = q.Messages
		return err
	})
	return n
}

// kill kills RabbitMQ, like a power cut, and starts it again.
func (r rabbit) kill(t testing.TB) {
	t.Helper()
	ground.Must(t, syscall.Kill(ground.Process(t, "rabbitmq", "erlang-pid"), syscall.SIGKILL))
	ground.Script(t, "start.sh", "rabbitmq", strconv.Itoa(r.port))
}

// sqs is a fake of SQS. It fails whole calls, single entries, and answers.
type sqs struct {
	mu       sync.Mutex
	faults   *rand.Rand // nil if no call fails
	accepted map[string]int
	bodies   map[string]string
}

func (q *sqs) has(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.accepted[key] > 0
}

func (q *sqs) distinct() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.accepted)
}

type entry struct {
	ID         string `json:"Id"`
	Body       string `json:"MessageBody"`
	Attributes map[string]struct {
		Value string `json:"StringValue"`
	} `json:"MessageAttributes"`
}

func (q *sqs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct{ Entries []entry }
	err := json.NewDecoder(r.Body).Decode(&in)
	if err != nil || !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".SendMessageBatch") {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	fault := 99
	if q.faults != nil {
		fault = q.faults.IntN(10)
	}
	hangUp := func() {
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	}
	switch fault {
	case 0:
		hangUp()
		return
	case 1:
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"__type":"com.amazonaws.sqs#ServiceUnavailable"}`)
		return
	case 2:
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"com.amazonaws.sqs#AccessDeniedException"}`)
		return
	}
	var out struct {
		Successful []map[string]any
		Failed     []map[string]any
	}
	for i, e := range in.Entries {
		if fault == 3 && i%2 == 0 {
			out.Failed = append(out.Failed, map[string]any{"Id": e.ID, "Code": "InternalError", "SenderFault": false})
			continue
		}
		key := e.Attributes["routing_key"].Value
		q.accepted[key]++
		q.bodies[key] = e.Body
		out.Successful = append(out.Successful, map[string]any{
			"Id": e.ID, "MessageId": "m",
			"MD5OfMessageBody": fmt.Sprintf("%x", md5.Sum([]byte(e.Body))), //nolint:gosec // SQS's own checksum
		})
	}
	if fault == 4 {
		hangUp() // the messages are accepted, but the caller gets no answer
		return
	}
	_ = json.NewEncoder(w).Encode(out)
}

// ackMonitor is a proxy between the bridge and RabbitMQ. It reads the frames of AMQP, and reports
// an acknowledgement of a message that SQS has not accepted.
type ackMonitor struct {
	t     testing.TB
	to    string
	safe  func(key string) bool
	mu    sync.Mutex
	acked int
}

func (w *ackMonitor) listen() string {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the test
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.connection(c)
		}
	}()
	return l.Addr().String()
}

func (w *ackMonitor) connection(client net.Conn) {
	defer client.Close()
	broker, err := net.Dial("tcp", w.to) //nolint:noctx // refused at once if RabbitMQ is down
	if err != nil {
		return
	}
	defer broker.Close()
	var mu sync.Mutex
	keys := map[uint64]string{} // routing keys by delivery tag
	go func() {
		defer client.Close()
		defer broker.Close()
		copyFrames(client, broker, func(class, method uint16, p []byte) {
			if class != 60 || method != 60 { // basic.deliver
				return
			}
			p = p[1+p[0]:] // skips the consumer's tag
			tag := binary.BigEndian.Uint64(p)
			p = p[9:]                    // skips the tag and the flag of a redelivery
			p = p[1+int(p[0]):]          // skips the exchange
			key := string(p[1 : 1+p[0]]) // the routing key
			mu.Lock()
			defer mu.Unlock()
			keys[tag] = key
		})
	}()
	hello := make([]byte, 8)
	if _, err := io.ReadFull(client, hello); err != nil {
		return
	}
	if _, err := broker.Write(hello); err != nil {
		return
	}
	copyFrames(broker, client, func(class, method uint16, p []byte) {
		if class != 60 || method != 80 { // basic.ack
			return
		}
		mu.Lock()
		key, known := keys[binary.BigEndian.Uint64(p)]
		mu.Unlock()
		if !known || p[8] != 0 || !w.safe(key) {
			w.t.Errorf("%q is acknowledged early (known %t, with others %d)", key, known, p[8])
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.acked++
	})
}

// copyFrames copies frames of AMQP, and calls show for each method frame.
func copyFrames(to io.Writer, from io.Reader, show func(class, method uint16, p []byte)) {
	in := bufio.NewReader(from)
	for {
		const head = 7
		size, err := in.Peek(head)
		if err != nil {
			return
		}
		frame := make([]byte, head+binary.BigEndian.Uint32(size[3:])+1)
		if _, err := io.ReadFull(in, frame); err != nil {
			return
		}
		if p := frame[head:]; frame[0] == 1 && len(p) > 4 {
			show(binary.BigEndian.Uint16(p), binary.BigEndian.Uint16(p[2:]), p[4:])
		}
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

// govukMessage returns a message of GOV.UK's Publishing API, in the form of the fixtures of
// source/govuk.
func govukMessage(id, version int, title string) []byte {
	return fmt.Appendf(
		nil,
		`{"content_id":"5f4c394f-9c3b-4b1e-8d2a-%012d","payload_version":%d,"document_type":"answer",`+
			`"schema_name":"answer","locale":"en","base_path":"/page-%d","title":%q,"update_type":"minor",`+
			`"publishing_app":"publisher",`+
			`"details":{"body":[{"content_type":"text/html","content":"<p>Some <b>text</b></p>"}]}}`,
		id,
		version,
		id,
		title,
	)
}

const pages = `
stack: search
sources: {publishing: {kind: govuk}}
sinks:
  search: {kind: opensearch, url: "https://search.example.org", index: "lull-{collection}"}
`

// The bridge and RabbitMQ are killed several times, and SQS fails in five ways. No message is lost,
// and none is confirmed before SQS has accepted it.
func TestKilledOnEitherSideNothingIsLostOrConfirmedEarly(t *testing.T) {
	const total = 3000
	r := rabbitmq(t)
	r.queues(t, "killed", "parked")
	q := &sqs{faults: rand.New(rand.NewPCG(14, 0)), accepted: map[string]int{}, bodies: map[string]string{}}
	s := httptest.NewServer(q)
	defer s.Close()
	w := &ackMonitor{t: t, to: r.at, safe: q.has}
	at := w.listen()
	want := map[string]string{}
	var all []amqp.Publishing
	var keys []string
	for i := range total {
		key := fmt.Sprintf("guide.major.%d", i)
		body := govukMessage(i, 1, key)
		want[key] = string(body)
		all, keys = append(all, amqp.Publishing{ContentType: "application/json", Body: body}), append(keys, key)
	}
	r.publish(t, all, keys)
	start := func() *process {
		return lull(t, []string{
			"LULL_RABBITMQ_URL=" + address(
				at), "AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
			"AWS_ENDPOINT_URL=" + s.URL,
		}, "bridge", "rabbitmq", "--queue", "killed", "--park", "parked", "--prefetch", "50",
			"--to", s.URL+"/111122223333/search-live")
	}
	var p *process
	for kills := range 8 {
		p = start()
		reached := min((kills+1)*total/10, total)
		until(t, fmt.Sprintf("%d messages are in SQS", reached), 2*time.Minute,
			func() bool { return q.distinct() >= reached })
		if kills%4 == 3 {
			r.kill(t)
			more := q.distinct() + 1
			until(t, "the bridge continues after RabbitMQ was killed", time.Minute,
				func() bool { return q.distinct() >= more })
		}
		p.kill()
	}
	p = start()
	until(t, "every message is in SQS", 2*time.Minute, func() bool { return q.distinct() == total })
	if code := p.stop(t); code != 0 {
		t.Errorf("the bridge ended with %d", code)
	}
	until(t, "RabbitMQ has none of them", 20*time.Second, func() bool { return r.count(t, "killed") == 0 })
	sent := 0
	for key, body := range want {
		if q.bodies[key] != body {
			t.Errorf("%s arrived as %.80q", key, q.bodies[key])
		}
		sent += q.accepted[key]
	}
	if n := r.count(t, "parked"); n > 0 {
		t.Errorf("%d messages are parked: a refusal of a whole call is about no message", n)
	}
	t.Logf("%d messages, accepted %d times, acknowledged %d times", total, sent, w.acked)
}

func TestGOVUKsMessagesReachTheSink(t *testing.T) {
	const documents, versions = 40, 5
	r := rabbitmq(t)
	r.queues(t, "search", "parked")
	url, api := dev(t, pages)
	p := lull(t, nil, "bridge", "rabbitmq", "--url", address(r.at), "--dev", url, "--queue", "search", "--park",
		"parked")
	var all []amqp.Publishing
	var keys []string
	add := func(key, kind string, body []byte) {
		all, keys = append(all, amqp.Publishing{ContentType: kind, Body: body}), append(keys, key)
	}
	for v := range versions {
		for d := range documents {
			add("answer.minor", "application/json", govukMessage(d, v+1, fmt.Sprintf("version %d", v+1)))
		}
	}
	rand.New(rand.NewPCG(3, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	add("heartbeat.major", "application/x-heartbeat", []byte("{}"))
	add("answer.minor", "application/json", []byte("{\"content_id\":\"\xff\x00"))
	add("answer.minor", "application/json", []byte(`{"text":"`+strings.Repeat("x", 1<<20)+`"}`))
	// A parked message must not be routed again by its header CC. Publishers in C# send unsigned
	// numbers.
	all[len(all)-1].Headers = amqp.Table{"CC": []any{"search"}, "attempt": uint32(1<<32 - 1), "part": uint16(1<<16 - 1)}
	r.publish(t, all, keys)
	until(t, "the message too large for SQS is parked", time.Minute, func() bool { return r.count(t, "parked") == 1 })
	for d := range documents {
		key := shard.DocID(fmt.Sprintf("content#5f4c394f-9c3b-4b1e-8d2a-%012d", d))
		until(t, string(key)+" is in the sink", time.Minute, func() bool {
			doc, err := api.Get(t.Context(), key)
			return err == nil && doc.Version == strconv.Itoa(versions) &&
				strings.Contains(string(doc.Document), fmt.Sprintf(`"title":"version %d"`, versions))
		})
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("the bridge ended with %d", code)
	}
	if n := r.count(t, "search"); n != 0 {
		t.Errorf("%d messages are left", n)
	}
	letters, err := api.Letters(t.Context(), operate.LetterFilter{})
	if err != nil || len(letters) != 1 || letters[0].Reason != "undecodable" {
		t.Errorf("want one dead letter, of what is not JSON: %+v, %v", letters, err)
	}
	r.withChannel(t, func(ch *amqp.Channel) error {
		m, _, err := ch.Get("parked", true)
		if m.Headers["x-lull-routing-key"] != "answer.minor" ||
			!strings.Contains(fmt.Sprint(m.Headers["x-lull-reason"]), "at most 1048576") ||
			len(m.Body) != 1<<20+len(`{"text":""}`) {
			t.Errorf("parked with %v, %d bytes", m.Headers, len(m.Body))
		}
		return err
	})
}
