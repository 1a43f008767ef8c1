package bench

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/queue"
)

// The simulated latencies, means of one request. A draw is half of its mean for certain and
// exponential above: its 99th percentile is 2.8 times the mean. They are assumptions of this
// benchmark, of the size that services in one region show; all contenders share them.
const (
	tableLatency  = 6 * time.Millisecond
	queueLatency  = 10 * time.Millisecond
	putLatency    = 30 * time.Millisecond
	getLatency    = 20 * time.Millisecond
	startLatency  = 30 * time.Millisecond
	sinkLatency   = 25 * time.Millisecond
	sinkDocument  = 20 * time.Microsecond // more for each document of a bulk request
	invokeLatency = 15 * time.Millisecond // from the service's decision to the function's first line, warm
	stateLatency  = 15 * time.Millisecond // from one state to the next
	pollLatency   = 10 * time.Millisecond // one ReceiveMessage
)

// The processor time that the simulated functions need, on one core; a function has a part of one
// by its memory. Measured on real code by the CPU part of this benchmark, and rounded up.
const (
	invocationCPU = time.Millisecond
	messageCPU    = 20 * time.Microsecond
	requestCPU    = 100 * time.Microsecond
	coreMegabytes = 1769
)

// assumption is the mean latency of one kind of request.
type assumption struct {
	Name string
	Mean time.Duration
}

// assumed is what the page says about all of this.
func assumed() any {
	return struct {
		Latencies                    []assumption
		Receive, Index, Core         int
		Invocation, Message, Request time.Duration
	}{
		[]assumption{
			{"DynamoDB", tableLatency},
			{"SQS", queueLatency},
			{"S3 write", putLatency},
			{"S3 read", getLatency},
			{"StartExecution", startLatency},
			{"sink request", sinkLatency},
			{"each document in it", sinkDocument},
			{"warm invocation", invokeLatency},
			{"state transition", stateLatency},
		},
		receiveMegabytes, indexMegabytes, coreMegabytes, invocationCPU, messageCPU, requestCPU,
	}
}

// Batches of DynamoDB's reads, as internal/aws/dynamodb makes them.
const (
	readBatch    = 100
	readParallel = 8
)

// latency draws.
type latency struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

func newLatency(seed uint64) *latency {
	return &latency{rnd: rand.New(rand.NewPCG(seed, 0x6c6174656e6379))}
}

func (l *latency) draw(mean time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return mean/2 + time.Duration(l.rnd.ExpFloat64()*float64(mean/2))
}

// of is how long an I/O takes and how many requests it is.
func (l *latency) of(op fault.Op) (d time.Duration, requests int) {
	switch op.Service {
	case fault.Table:
		requests = 1
		if op.Call == "Read" {
			requests = max(1, (op.Count+readBatch-1)/readBatch)
		}
		for range (requests + readParallel - 1) / readParallel {
			d += l.draw(tableLatency)
		}
		return d, requests
	case fault.SQS:
		return l.draw(queueLatency), max(1, (op.Count+queue.MaxEntries-1)/queue.MaxEntries)
	case fault.Bucket:
		if op.Call == "PutManifest" || op.Call == "PutNext" {
			return l.draw(putLatency), 1
		}
		return l.draw(getLatency), 1
	case fault.States:
		return l.draw(startLatency), 1
	default:
		return l.draw(sinkLatency) + time.Duration(op.Count)*sinkDocument, 1
	}
}
