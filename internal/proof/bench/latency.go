// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/queue"
)

// The simulated latencies: the mean time of one request. A random latency is half of its mean plus
// an exponential part, so its 99th percentile is 2.8 times the mean. The values are assumptions of
// this benchmark, similar to services in one region. All contenders share them.
const (
	tableLatency  = 6 * time.Millisecond
	queueLatency  = 10 * time.Millisecond
	putLatency    = 30 * time.Millisecond
	getLatency    = 20 * time.Millisecond
	startLatency  = 30 * time.Millisecond
	sinkLatency   = 25 * time.Millisecond
	sinkDocument  = 20 * time.Microsecond // additional time for each document of a bulk request
	invokeLatency = 15 * time.Millisecond // from the service's decision to the first line of a warm function
	stateLatency  = 15 * time.Millisecond // from one state to the next
	pollLatency   = 10 * time.Millisecond // one ReceiveMessage
)

// The processor time that the simulated functions need on one core. The memory of a function
// decides which part of a core it has. The CPU part of this benchmark measured the values on real
// code. All values are rounded up.
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

// assumed returns the assumptions that the page lists.
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

// Batch sizes of DynamoDB's reads, as in internal/aws/dynamodb.
const (
	readBatch    = 100
	readParallel = 8
)

// latency returns random latencies.
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

// timeOf returns how long an operation takes, and how many requests it needs.
func (l *latency) timeOf(op fault.Op) (d time.Duration, requests int) {
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
