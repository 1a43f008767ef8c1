package index

import "context"

// fetch loads the payloads of claimed documents that are references. It returns the documents
// that can be written.
//
// The content behind a reference may change. So no claim of another invocation may lie between
// load and write: older content could overwrite newer content. If a payload cannot be loaded
// now, its lease is released without counting a refusal, because the sink was not asked.
func fetch(ctx context.Context, l *loader, b *budget, c *closer, docs []*document) (ready []*document) {
	l.loadReferences(ctx, docs)
	ready, unloaded := split(docs, func(d *document) bool {
		if d.reference != nil && d.unloaded == "" && !b.mayWrite() {
			d.unloaded = notLoaded + "no time is left to write it"
		}
		l.noteFetched(d)
		return d.unloaded == ""
	})
	c.finishAll(len(unloaded), func(i int) func() {
		d := unloaded[i]
		return c.release(ctx, d, d.unloaded, d.loadAfter, false)
	})
	return ready
}
