// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import "testing"

// answers is a script that replaces the server for the requests about rebuilds, because a rebuild
// needs a search engine. The tests of package console check that the server handles the same
// requests.
const answers = `(() => {
	const real = window.fetch, hostile = "<script>alert(1)</script>\u202e" + "x".repeat(300);
	window.stack = {phase: "filling", total: 100000, done: 40000, posted: []};
	const line = (o) => new TextEncoder().encode(JSON.stringify(o) + "\n");
	const progress = () => ({sink: "search", collection: "content", phase: stack.phase, old: "lull-content-1", new: "lull-content-2",
		begun: new Date(Date.now() - 60000).toISOString(), by: hostile,
		total: stack.total, done: stack.done, missed: 3, repaired: 12,
		left: 1, error: hostile, refused: [{id: hostile, reason: hostile}], refusals: 25});
	window.fetch = (path, o) => {
		const at = String(path);
		if (at.includes("/console/rebuilds")) return Promise.resolve(Response.json({rebuilds: stack.gone ? [] : [progress()]}));
		if (!at.includes("/console/rebuild/")) return real(path, o);
		stack.posted.push(at.split("/").at(-1) + " " + o.body);
		stack.gone = true;
		return Promise.resolve(new Response(new ReadableStream({async start(c) {
			stack.done = 70000;
			c.enqueue(line({progress: progress()}));
			stack.phase = at.includes("abort") ? "aborted" : "done";
			c.enqueue(line({progress: progress(), end: true}));
			c.close();
		}})));
	};
	return true;
})()`

func TestARebuildIsShownResumedAndAborted(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	p := open(t, s.address)
	for _, action := range []string{"Resume", "Abort…"} {
		p.load("#/search")
		p.until(answers)
		p.visit("#/now")
		p.until(`document.querySelector("progress[aria-label='Progress of filling']")?.value === 40000`)
		p.shows("40,000 of 100,000 documents")
		p.shows("1 documents would be missing")
		for _, theme := range []string{"light", "dark"} {
			p.theme(theme)
			p.accessible("a rebuild, " + theme)
		}
		p.fits("a rebuild")
		p.click("button", action)
		if action == "Resume" {
			p.shows("done: readers have the new index")
			p.until(`stack.posted.join() === 'resume {"sink":"search"}'`)
			continue
		}
		p.until(`document.querySelector("dialog #typed")`)
		p.until(
			`(() => { const f = document.querySelector("#typed"); f.value = "abort content"; f.dispatchEvent(new Event("input")); return true; })()`,
		)
		p.click("dialog button", "Abort")
		p.shows("aborted: readers have the index that they had")
		p.until(`stack.posted.join() === 'abort {"sink":"search","confirm":"abort content"}'`)
	}
	p.quiet()
}
