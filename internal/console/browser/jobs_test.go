// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A redrive that takes long is shown with its progress, and updates by itself. It stops after a
// question, and continues where it stopped.
func TestAJobIsFollowedStoppedAndResumed(t *testing.T) {
	t.Parallel()
	var events strings.Builder
	const letters = 40
	for i := range letters {
		fmt.Fprintf(&events, `{"type":"doc.changed","subject":"d-%02d","sequence":"1","data":[]}`+"\n", i)
	}
	s := start(t, events.String())
	p := open(t, s.address)
	p.load("#/jobs")
	p.shows("No job runs, and none has run")
	p.visit("#/dead")
	p.shows(fmt.Sprintf("%d parked", letters))
	p.visit("#/jobs")
	go func() { // it ends with the job, or with the server
		answer, err := http.Post("http://"+s.address+"/console/dead/redrive", "application/json",
			strings.NewReader(`{"all":true,"rate":1}`))
		if err == nil {
			_, _ = io.Copy(io.Discard, answer.Body) // the job runs as long as somebody reads the answer
			_ = answer.Body.Close()
		}
	}()
	p.until(`document.querySelector("main tbody .tag")?.textContent === "running"`)
	p.until(`/[1-9][0-9]* done/.test(document.querySelector("main tbody .progress").textContent)`)
	p.accessible("a job runs")
	p.fits("a job runs")
	p.click("main tbody a", "redrive")
	done := func() int {
		return value[int](p, `Number(document.querySelector(".progress")?.textContent.match(/([0-9]+) done/)?.[1] ?? 0)`)
	}
	p.until(`/[0-9] done/.test(document.querySelector("main .progress")?.textContent)`)
	before := done()
	p.until(fmt.Sprintf(`Number(document.querySelector("main .progress").textContent.match(/([0-9]+) done/)[1]) > %d`, before))
	p.click("main button", "Stop…")
	p.shows("done and stay")
	p.accessible("the question")
	p.click("dialog button", "Stop the job")
	p.until(`document.querySelector("main .progress .tag").textContent === "stopped"`)
	stopped := done()
	for _, theme := range []string{"light", "dark"} {
		p.theme(theme)
		p.accessible("stopped, " + theme)
	}
	p.fits("a stopped job")
	p.click("main button", "Resume…")
	p.click("dialog button", "Resume the job")
	p.until(`document.querySelector("main .progress .tag").textContent === "done"`)
	if got := done(); got <= stopped {
		t.Errorf("%d are done after the resume, and %d before", got, stopped)
	}
	p.quiet()
}
