package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

// verifyPoint is the progress of a verification.
type verifyPoint struct {
	// What is verified. To continue with another order would mix two answers.
	Order verifyOrder `json:"order"`
	Run   string      `json:"run,omitempty"` // of the repair

	Messages int    `json:"messages"` // of the export that are done
	Bytes    int64  `json:"bytes"`    // of the export up to there
	Digest   string `json:"digest"`   // SHA-256 of those bytes
	Read     bool   `json:"read"`     // the export is done

	Place  reconcile.Place `json:"place"`
	Walked bool            `json:"walked"` // sink and rows are done

	Look  map[shard.DocID]bool `json:"look,omitempty"`  // documents in motion
	Again map[int]bool         `json:"again,omitempty"` // messages to compare again; true: sent for a repair
	Told  map[shard.DocID]bool `json:"told,omitempty"`  // documents that differ; true: sent again
	Total verified             `json:"total"`
}

// verifyOrder says what to verify.
type verifyOrder struct {
	Collection shard.Collection `json:"collection"`
	Stack      string           `json:"stack"`
	Export     string           `json:"export,omitempty"`
	Source     string           `json:"source,omitempty"`
	Repair     bool             `json:"repair,omitempty"`
	Versions   bool             `json:"versions,omitempty"`
	Complete   string           `json:"complete_at,omitempty"`
	Sink       string           `json:"sink,omitempty"`
}

// verification is one run of `lull verify`.
type verification struct {
	*app
	verifyFlags

	api        operate.API
	collection shard.Collection
	kept       checkpoint // empty for a sample
	cp         verifyPoint
	why        string // the first event of the export that was not compared, and why

	exported map[uint64]struct{}     // with --complete-at: documents of the export, by hash
	orphans  []operate.ReconcileCopy // documents of the sink that the export lacks

	pace, repairs *rate.Limiter
	started       time.Time
	saved, said   time.Time
}

func (v *verification) run(ctx context.Context) error {
	if err := v.begin(); err != nil {
		return usage(err)
	}
	v.sayPrice(ctx)
	err := v.all(ctx)
	var exit *exitError
	switch {
	case err == nil:
		return cmp.Or(v.kept.remove(), v.end(ctx))
	case errors.As(err, &exit), errors.Is(err, operate.ErrInput), errors.Is(err, operate.ErrNotFound), v.kept == "":
		return err // the earlier checkpoint stays, so the same command continues when the error is fixed
	}
	if keep := v.kept.save(&v.cp); keep != nil {
		return errors.Join(err, keep)
	}
	return fmt.Errorf("%w; the same command goes on from %s", err, v.kept)
}

func (v *verification) all(ctx context.Context) error {
	if v.export != "" && !v.cp.Read {
		if err := v.compareExport(ctx); err != nil {
			return err
		}
		v.cp.Read = true
	}
	if !v.cp.Walked {
		if err := v.walk(ctx); err != nil {
			return err
		}
		if err := v.removeOrphans(ctx); err != nil {
			return err
		}
		v.cp.Walked = true
	}
	return v.settle(ctx)
}

// begin continues from the checkpoint, if there is one.
func (v *verification) begin() error {
	v.started, v.said = time.Now(), time.Now()
	v.pace, v.repairs = paced(v.rate, publishBatch), paced(min(cmp.Or(v.rate, maxRepairs), maxRepairs), publishBatch)
	if v.sample == 0 { // the next sample has other documents
		name := "lull-verify-" + string(v.collection)
		if v.sink != "" {
			name += "@" + v.sink
		}
		v.kept = checkpoint(cmp.Or(v.checkpoint, name+".checkpoint"))
	}
	order := verifyOrder{v.collection, v.target.name(), v.export, v.source, v.repair, v.versions, v.wholeAt, v.sink}
	v.cp = newPoint(order)
	found, err := v.kept.read(&v.cp)
	switch {
	case err != nil:
		return err
	case found && v.cp.Order != order:
		return fmt.Errorf("checkpoint %s is of another verification (%s, --source %q, --repair=%t): say the same, or "+
			"remove it to begin anew", v.kept, v.cp.Order.Collection, v.cp.Order.Export, v.cp.Order.Repair)
	case found && (v.cp.damaged() || v.export != "" && v.cp.Run == ""):
		return v.kept.broken(errors.New("something of it is missing"))
	}
	// Earlier code kept a message here before it was sent.
	maps.DeleteFunc(v.cp.Again, func(n int, _ bool) bool { return n >= v.cp.Messages })
	if v.cp.Order = order; !found && v.export != "" {
		v.cp.Run = newRun()
	}
	if v.repair {
		v.cp.Total.Run = v.cp.Run
	}
	if v.wholeAt != "" && !v.cp.Walked { // the documents of the export are only in memory
		v.cp.Messages, v.cp.Bytes, v.cp.Digest, v.cp.Read = 0, 0, "", false
		v.cp.Place, v.cp.Total.Export, v.cp.Total.Documents, v.cp.Total.Rows = reconcile.Place{}, map[string]int{}, 0, 0
	}
	if found {
		fmt.Fprintf(v.err, "goes on from %s\n", v.kept)
	}
	return nil
}

// newPoint returns the start of a verification. It sets all maps, because a file leaves out empty
// ones.
func newPoint(order verifyOrder) verifyPoint {
	return verifyPoint{
		Look: map[shard.DocID]bool{}, Again: map[int]bool{}, Told: map[shard.DocID]bool{},
		Total: verified{
			Collection: order.Collection, Repair: order.Repair, Drift: map[string]int{}, Repaired: map[string]int{},
			Export: map[string]int{},
		},
	}
}

// damaged reports whether the file has values that lull never writes.
func (p *verifyPoint) damaged() bool {
	t := &p.Total
	return p.Messages < 0 || p.Bytes < 0 || p.Look == nil || p.Again == nil || p.Told == nil ||
		t.Drift == nil || t.Repaired == nil || t.Export == nil
}

// How often a long run saves its checkpoint and prints its progress. A short run does neither.
const (
	firstSave = 5 * time.Second
	saveEvery = 2 * time.Second
)

// reached saves and prints the progress of the run.
func (v *verification) reached(what string, n int) error {
	now := time.Now()
	if now.Sub(v.said) >= sayEvery {
		v.said = now
		terminal.Printf(v.err, "%d %s compared, %d documents differ\n", n, what, len(v.cp.Told))
	}
	if now.Sub(v.started) < firstSave || now.Sub(v.saved) < saveEvery {
		return nil
	}
	err := v.kept.save(&v.cp)
	v.saved = time.Now()
	return err
}

// compareExport compares every message of the export, from where the last run stopped.
func (v *verification) compareExport(ctx context.Context) error {
	in, err := v.openEvents(ctx, v.export)
	if err != nil {
		return usage(err)
	}
	defer in.Close()
	if v.wholeAt != "" {
		v.exported = map[uint64]struct{}{}
	}
	if v.cp.Bytes > 0 {
		if err := in.goOn(v.kept, v.cp.Bytes, v.cp.Messages, v.cp.Digest); err != nil {
			return usage(err)
		}
	}
	some := &chosen{Input: in, next: v.cp.Messages}
	err = feed.Batches(ctx, some, publishBatch, func(batch []queue.Outgoing) error {
		if err := v.compare(ctx, batch, some.taken()); err != nil {
			return err
		}
		v.cp.Messages, v.cp.Bytes, v.cp.Digest = v.cp.Messages+len(batch), in.read, in.digest()
		return v.reached("messages of the export", v.cp.Messages)
	})
	return cmp.Or(err, v.nothing())
}

// chosen reads messages of an input with their numbers, from 0.
type chosen struct {
	feed.Input
	wanted  map[int]bool // the numbers of the messages to read, nil for all
	next    int
	numbers []int
}

// Next returns the next message that is wanted.
func (c *chosen) Next() (feed.Timed, error) {
	for {
		m, err := c.Input.Next()
		if err != nil {
			return m, err
		}
		n := c.next
		c.next++
		if _, ok := c.wanted[n]; ok || c.wanted == nil {
			c.numbers = append(c.numbers, n)
			return m, nil
		}
	}
}

// taken returns the numbers of the messages since its last call.
func (c *chosen) taken() []int {
	numbers := c.numbers
	c.numbers = nil
	return numbers
}

// nothing refuses an export without events of the collection, because the answer would look as if
// nothing differed.
func (v *verification) nothing() error {
	if t := v.cp.Total.Export; sum(t) > t["skipped"]+t[notDecoded] {
		return nil
	}
	why := "it is empty"
	if v.why != "" {
		why = "the first event: " + v.why
	}
	return usagef("--source %s: it has no event of collection %s (%s)", v.export, v.collection, why)
}

const (
	inMotion   = "in_motion"
	notDecoded = "invalid"
	// maxRepairs is the most documents a second that a repair changes.
	maxRepairs = 200
	// maxNamedInvalid is how many invalid events are named. In an export of another form, all
	// events are invalid.
	maxNamedInvalid = 20
)

// check compares a batch of the export, and waits for the pace.
func (v *verification) check(ctx context.Context, batch []queue.Outgoing) ([]operate.CheckedEvent, error) {
	for i := range batch {
		feed.Mark(&batch[i], v.source, v.group)
	}
	done, err := v.api.Check(ctx, operate.CheckOrder{
		Collection: v.collection, Messages: batch, Versions: v.versions, Sink: v.sink,
	})
	if err != nil {
		return nil, err
	}
	return done.Events, v.pace.WaitN(ctx, len(batch))
}

// compare compares a batch of the export. A repair sends the messages of documents that differ
// again. Messages that were sent or are in motion are compared again later.
func (v *verification) compare(ctx context.Context, batch []queue.Outgoing, numbers []int) error {
	events, err := v.check(ctx, batch)
	if err != nil {
		return err
	}
	again := map[int]bool{} // as v.cp.Again
	var differ []operate.CheckedEvent
	for _, e := range events {
		n := numbers[e.Message]
		switch sent := v.cp.Again[n]; {
		case e.State == inMotion, e.Drift && sent:
			again[n] = again[n] || sent
		case e.Drift && v.repair:
			again[n], differ = true, append(differ, e)
		case e.Drift:
			differ = append(differ, e)
		}
	}
	if err := v.resend(ctx, batch, numbers, again); err != nil {
		return err
	}
	for _, e := range events { // only now, because if sending fails they are compared again
		if n := numbers[e.Message]; n >= v.cp.Messages {
			v.count(e, n)
		}
	}
	for _, e := range differ {
		outcome := found
		if v.repair {
			outcome = resent
		}
		v.tell(drifted{Key: e.Key, Difference: e.State, Version: e.Version, Outcome: outcome})
	}
	for _, n := range numbers {
		delete(v.cp.Again, n)
	}
	maps.Copy(v.cp.Again, again)
	return nil
}

// count counts an event of the export.
func (v *verification) count(e operate.CheckedEvent, n int) {
	v.cp.Total.Export[e.State]++
	if v.exported != nil && e.Key != "" {
		v.exported[hashOf(e.Key)] = struct{}{}
	}
	if e.State == notDecoded && v.cp.Total.Export[notDecoded] <= maxNamedInvalid {
		terminal.Printf(v.err, "not compared: message %d: %s\n", n+1, e.Why)
	}
	v.why = cmp.Or(v.why, e.Why)
}

// resend sends the messages of a batch that again marks and that were not sent yet.
func (v *verification) resend(ctx context.Context, batch []queue.Outgoing, numbers []int, again map[int]bool) error {
	var send []queue.Outgoing
	var of []int
	for i, n := range numbers {
		if again[n] && !v.cp.Again[n] {
			send, of = append(send, batch[i]), append(of, n)
		}
	}
	if len(send) == 0 {
		return nil
	}
	if err := v.repairs.WaitN(ctx, len(send)); err != nil {
		return err
	}
	done, err := v.api.Publish(ctx, operate.Publication{
		Messages: send, Lane: flight.Bulk, Run: v.cp.Run, Sink: v.sink,
	})
	for _, r := range done.Refused {
		terminal.Printf(v.err, "not repaired: message %d: %s\n", of[r.Message]+1, r.Why)
	}
	return err
}

// walk compares sink and rows, from where the last run stopped.
func (v *verification) walk(ctx context.Context) error {
	before := v.cp.Total
	counted := func(res operate.ReconcileResult) {
		v.cp.Total.Rows, v.cp.Total.Documents = before.Rows+res.Rows, before.Documents+res.Documents
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	res, err := v.api.Reconcile(ctx, operate.ReconcileOrder{
		Collection: v.collection, DryRun: !v.repair, Rate: v.rate, By: whoami(), Sink: v.sink,
		Audit: &operate.ReconcileAudit{Sample: v.sample, From: v.cp.Place, Seen: v.exported != nil},
		Found: v.differs, Seen: v.seen,
		Reached: func(p reconcile.Place, res operate.ReconcileResult) {
			counted(res)
			if v.sample == 0 {
				v.cp.Place = p
			}
			if err := v.reached("documents of sink and rows", v.cp.Total.Documents+v.cp.Total.Rows); err != nil {
				cancel(err)
			}
		},
	})
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = errors.Join(err, cause)
	}
	if err == nil {
		counted(res)
	}
	if err == nil && res.Rows+res.Documents+before.Rows+before.Documents == 0 && v.export == "" && v.sample == 0 {
		_, err = v.api.Reconcile(ctx, operate.ReconcileOrder{
			Collection: v.collection, DryRun: true, By: whoami(), Sink: v.sink,
		})
	}
	return err
}

// differs handles a document in which sink and row differ.
func (v *verification) differs(l operate.ReconcileLine) {
	sent, told := v.cp.Told[l.Key]
	switch {
	case l.Outcome == inMotion, l.Outcome == "later":
		if !sent {
			v.cp.Look[l.Key] = true
		}
		return
	case sent, told && !v.repair: // the export has shown it already
		return
	case l.Outcome == "left" && v.exported != nil: // an orphan, or the export has shown it already
		return
	case !v.repair:
		l.Outcome = found
	}
	v.tell(drifted{Key: l.Key, Difference: l.Difference, Version: l.Version, Outcome: l.Outcome, Error: l.Error})
}

// settle compares documents that are in motion or were repaired, until all are decided. It stops if
// none is decided for as long as the patience.
func (v *verification) settle(ctx context.Context) error {
	wait, last := time.Second, time.Now()
	count := func() int { return len(v.cp.Look) + len(v.cp.Again) + len(v.orphans) }
	for count() > 0 {
		left := count()
		if patience := v.patience - time.Since(last); patience <= 0 {
			break
		} else if err := sleep(ctx, min(wait, patience)); err != nil {
			return err
		}
		if err := errors.Join(v.lookAgain(ctx), v.compareAgain(ctx), v.remove(ctx)); err != nil {
			return err
		}
		if wait = min(2*wait, 15*time.Second); count() < left {
			last = time.Now()
		}
		if err := v.reached("documents repaired or in motion", left); err != nil {
			return err
		}
	}
	v.cp.Total.InMotion = len(v.cp.Look) + len(v.orphans)
	for _, sent := range v.cp.Again {
		if sent {
			v.cp.Total.Remaining++
		} else {
			v.cp.Total.InMotion++
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// lookAgain compares the documents in motion with their rows again.
func (v *verification) lookAgain(ctx context.Context) error {
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(v.cp.Look)), 1000) {
		still := map[shard.DocID]bool{}
		_, err := v.api.Reconcile(ctx, operate.ReconcileOrder{
			Collection: v.collection, DryRun: !v.repair, Rate: v.rate, By: whoami(), Sink: v.sink,
			Audit: &operate.ReconcileAudit{Keys: keys},
			Found: func(l operate.ReconcileLine) {
				if still[l.Key] = l.Outcome == inMotion || l.Outcome == "later"; !still[l.Key] {
					v.differs(l)
				}
			},
		})
		if err != nil {
			return err
		}
		for _, k := range keys {
			if !still[k] {
				delete(v.cp.Look, k)
			}
		}
	}
	return nil
}

// compareAgain compares the messages again that were in motion, or sent for a repair.
func (v *verification) compareAgain(ctx context.Context) error {
	if len(v.cp.Again) == 0 {
		return nil
	}
	in, err := v.openEvents(ctx, v.export)
	if err != nil {
		return err
	}
	defer in.Close()
	some := &chosen{Input: in, wanted: v.cp.Again}
	return feed.Batches(ctx, some, publishBatch, func(batch []queue.Outgoing) error {
		return v.compare(ctx, batch, some.taken())
	})
}
