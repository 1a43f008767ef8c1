// SPDX-License-Identifier: Apache-2.0

// Package rabbitmq consumes from a queue of RabbitMQ for package bridge, over AMQP 0-9-1.
//
// It promises:
//
//   - It declares, binds and deletes nothing. A queue that does not exist is an error.
//   - A message is acknowledged by its own tag, never together with other messages.
//   - A message counts as parked only after RabbitMQ confirmed that a queue has it. A parked
//     message is persistent.
//   - No error contains a password.
package rabbitmq

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullhq/lull/internal/operator/bridge"
	"github.com/lullhq/lull/internal/seam/backoff"
)

// Broker is a queue of RabbitMQ.
type Broker struct {
	URL      string // amqp://user:password@host:port/vhost, or amqps
	Queue    string
	Park     string // the queue for messages that cannot be sent; empty for none
	Prefetch int    // how many messages may be unconfirmed
	TLS      *tls.Config
}

var _ bridge.Broker = Broker{}

const (
	// dialTimeout bounds connecting, and each answer until the session is open.
	dialTimeout = 15 * time.Second
	// heartbeat is how often each side sends a heartbeat. After two missing heartbeats, a connection
	// counts as dead.
	heartbeat = 10 * time.Second
	// parting bounds how long Close waits for RabbitMQ's answer.
	parting = 3 * time.Second
)

// Open connects and consumes.
func (b Broker) Open(ctx context.Context) (bridge.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := amqp.DialConfig(b.URL, amqp.Config{
		Heartbeat: heartbeat, TLSClientConfig: b.TLS,
		Properties: amqp.Table{"connection_name": "lull bridge " + b.Queue, "product": "lull"},
		Dial: func(network, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				err = c.SetDeadline(time.Now().Add(dialTimeout)) // the library removes it once the session is open
			}
			return c, err
		},
	})
	if err != nil {
		return nil, explain("connect to RabbitMQ", err)
	}
	s := &session{conn: conn, park: b.Park, messages: make(chan bridge.Message), done: make(chan struct{})}
	if err := s.begin(b); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// errNoPark says how to park messages.
var errNoPark = fmt.Errorf("%w: start the bridge with a queue to park such messages in (--park)", bridge.ErrNoPark)

type session struct {
	conn     *amqp.Connection
	consumer *amqp.Channel
	tag      string
	messages chan bridge.Message
	ended    sync.Once
	done     chan struct{}

	mu  sync.Mutex
	err error

	park     string
	parking  sync.Mutex // for one message at a time, because a returned message has no tag
	parker   *amqp.Channel
	returned chan amqp.Return
	refused  chan *amqp.Error // why parker was closed
}

// begin opens the channels, checks that the queues exist, and consumes.
func (s *session) begin(b Broker) (err error) {
	if s.consumer, err = s.conn.Channel(); err != nil {
		return explain("open a channel", err)
	}
	closed := s.consumer.NotifyClose(make(chan *amqp.Error, 1))
	cancelled := s.consumer.NotifyCancel(make(chan string, 1))
	if err := look(s.consumer, b.Queue, "queue"); err != nil {
		return err
	}
	if b.Park != "" {
		if err := s.openPark(); err != nil {
			return err
		}
	}
	if err := s.consumer.Qos(b.Prefetch, 0, false); err != nil {
		return explain("set the prefetch", err)
	}
	s.tag = "lull-bridge"
	deliveries, err := s.consumer.Consume(b.Queue, s.tag, false, false, false, false, nil)
	if err != nil {
		return explain("consume from queue "+b.Queue, err)
	}
	go s.watch(closed, cancelled)
	go s.hand(deliveries)
	return nil
}

// openPark opens the channel for messages to park.
func (s *session) openPark() (err error) {
	if s.parker, err = s.conn.Channel(); err != nil {
		return explain("open a channel", err)
	}
	if err := look(s.parker, s.park, "park"); err != nil {
		return err
	}
	if err := s.parker.Confirm(false); err != nil {
		return explain("ask RabbitMQ for confirmations", err)
	}
	s.returned = s.parker.NotifyReturn(make(chan amqp.Return, 1))
	s.refused = s.parker.NotifyClose(make(chan *amqp.Error, 1))
	return nil
}

// look checks that a queue exists, without declaring it.
func look(ch *amqp.Channel, name, flag string) error {
	_, err := ch.QueueDeclarePassive(name, false, false, false, false, nil)
	var refused *amqp.Error
	if errors.As(err, &refused) && refused.Code == amqp.NotFound {
		return backoff.Permanent(
			fmt.Errorf("--%s: RabbitMQ has no queue %q in this virtual host: declare it and bind it, "+
				"because the bridge declares nothing", flag, name),
		)
	}
	return explain("look at queue "+name, err)
}

// explain adds what the bridge was doing, and how to fix the error. An error that needs an operator
// is permanent.
func explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	var refused *amqp.Error
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var certificate *tls.CertificateVerificationError
	var fix string
	switch {
	case errors.Is(err, amqp.ErrCredentials), errors.Is(err, amqp.ErrSASL):
		fix = "correct the user and the password of the address"
	case errors.Is(err, amqp.ErrVhost):
		fix = "correct the virtual host, the path of the address (/%2f is the default one); the user needs rights there"
	case errors.As(err, &authority), errors.As(err, &host), errors.As(err, &certificate):
		fix = "correct the address, or name the certificate's authority with --ca"
	case errors.As(err, &refused) && (refused.Code == amqp.AccessRefused || refused.Code == amqp.NotAllowed):
		fix = "give the user the right to read the queue, and to write to the default exchange if it parks"
	case errors.As(err, &refused) && refused.Code == amqp.ResourceLocked:
		fix = "another connection uses the queue exclusively: stop it, or consume from another queue"
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
	return backoff.Permanent(fmt.Errorf("%s: %w: %s", doing, err, fix))
}

// watch ends the session when RabbitMQ ends it.
func (s *session) watch(closed <-chan *amqp.Error, cancelled <-chan string) {
	_, alive := <-cancelled // the library closes cancelled after closed has its reason
	if alive {
		s.end(errors.New("RabbitMQ cancelled the consumer: the queue was deleted, or its node has stopped"))
	} else if err := <-closed; err != nil { // also if the connection closed
		s.end(explain("consume", err))
	} else {
		s.end(nil)
		return
	}
	_ = s.conn.CloseDeadline(time.Now().Add(parting)) // the connection may be closed already
}

// hand passes deliveries to Messages.
func (s *session) hand(deliveries <-chan amqp.Delivery) {
	defer close(s.messages)
	for d := range deliveries {
		select {
		case s.messages <- delivery{&d}.message():
		case <-s.done:
			return // the broker delivers this message again
		}
	}
}

func (s *session) end(err error) {
	s.ended.Do(func() {
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
		close(s.done)
	})
}

// Messages implements [bridge.Session].
func (s *session) Messages() <-chan bridge.Message { return s.messages }

// Done implements [bridge.Session].
func (s *session) Done() <-chan struct{} { return s.done }

// Err implements [bridge.Session].
func (s *session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Confirm acknowledges one message.
func (s *session) Confirm(m bridge.Message) error { return s.consumer.Ack(m.Tag, false) }

// Stop cancels the consumer. Messages that were delivered before still arrive.
func (s *session) Stop() error { return s.consumer.Cancel(s.tag, false) }

// Close ends the session.
func (s *session) Close() {
	s.end(nil)
	_ = s.conn.CloseDeadline(time.Now().Add(parting)) // the broker notices either way
}

// Park publishes a message to the queue for parked messages, and waits until RabbitMQ confirms that
// the queue has it. Headers say where it came from, and why it is parked.
func (s *session) Park(ctx context.Context, m bridge.Message, why string) error {
	if s.park == "" {
		return errNoPark
	}
	d, _ := m.Original.(*amqp.Delivery)
	if d == nil {
		return errors.New("park: the message is not one of this session")
	}
	s.parking.Lock()
	defer s.parking.Unlock()
	if s.parker.IsClosed() { // RabbitMQ closes the channel if a right is missing, and an operator may grant the right
		if err := s.openPark(); err != nil {
			return err
		}
	}
	// The user id is left out, because it must be the user of this connection. The expiration is left
	// out, because RabbitMQ would delete the message after it.
	sent, err := s.parker.PublishWithDeferredConfirmWithContext(ctx, "", s.park, true, false, amqp.Publishing{
		Headers:      parkedHeaders(d, why, s.conn.Config.FrameSize),
		DeliveryMode: amqp.Persistent, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding,
		Priority: d.Priority, CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, MessageId: d.MessageId,
		Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId, Body: d.Body,
	})
	if err != nil {
		return explain("park", err)
	}
	kept, err := sent.WaitContext(ctx)
	if err != nil {
		return fmt.Errorf("park: %w", err)
	}
	select {
	case err := <-s.refused:
		if err == nil {
			err = amqp.ErrClosed
		}
		return explain("park", err)
	default:
	}
	select {
	case <-s.returned: // RabbitMQ returns a message before it confirms it
		return fmt.Errorf("park: queue %q no longer exists: declare it again", s.park)
	default:
	}
	if !kept {
		return fmt.Errorf("park: RabbitMQ refused the message for queue %q: the queue may be full", s.park)
	}
	return nil
}

// properties is an upper bound of the size of a message's properties without headers, in bytes.
const properties = 4 << 10

// parkedHeaders returns the headers of a parked message. RabbitMQ sends a message to every queue
// that the headers CC and BCC name, so these two headers get other names. One of these queues may
// be the original queue.
//
// Headers must fit into one frame, of at most frame bytes, or RabbitMQ closes the connection. The
// sender's headers fit. If lull's headers do not fit in addition, the message is parked without
// lull's headers, and without CC and BCC.
func parkedHeaders(d *amqp.Delivery, why string, frame int) amqp.Table {
	headers := amqp.Table{}
	for name, v := range d.Headers {
		if name == "CC" || name == "BCC" {
			name = "x-lull-" + name
		}
		headers[name] = v
	}
	headers["x-lull-reason"], headers["x-lull-exchange"], headers["x-lull-routing-key"] = why, d.Exchange, d.RoutingKey
	if frame > 0 && sizeOf(headers)+properties > frame {
		headers = maps.Clone(d.Headers)
		delete(headers, "CC")
		delete(headers, "BCC")
	}
	return headers
}

// sizeOf is an upper bound of a value's size in a frame, in bytes.
func sizeOf(v any) int {
	n := 9 // a byte for the kind, and a number or a length
	switch v := v.(type) {
	case string:
		n += len(v)
	case []byte:
		n += len(v)
	case []any:
		for _, e := range v {
			n += sizeOf(e)
		}
	case amqp.Table:
		for name, e := range v {
			n += 1 + len(name) + sizeOf(e)
		}
	}
	return n
}
