// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// commit returns the commit of the tree that was tested, or "unknown".
func (r *runner) commit() string {
	out, err := exec.Command("git", "-C", r.g.Root, "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// page returns the result of a run as Markdown.
func (s state) page(o options, commit string) string {
	var p strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&p, format+"\n", args...) }
	line("# Acceptance")
	line("")
	line("For everybody who asks where lull has run. The [glossary](glossary.md) defines the words.")
	line("`make acceptance` wrote this page; [deploy](deploy.md#prove-it-on-your-account) says what it")
	line("does.")
	line("")
	where := map[string]string{
		onAWS:        "on **AWS**, in the region " + s.Region + ".",
		onLocalStack: "on **LocalStack**, an emulator. It did not run on AWS.",
		onMinistack:  "on **ministack**, an emulator that enforces IAM. It did not run on AWS.",
	}[o.backend]
	line("This run of the commit %s on %s was", commit, s.Begun.Format("2 January 2006"))
	line("%s", where)
	line("")
	line("| step | result | seconds |")
	line("|---|---|---|")
	for _, d := range s.Steps {
		result := "ok"
		if d.Skipped != "" {
			result = "left out: " + d.Skipped
		}
		line("| %s | %s | %d |", d.Name, result, d.Seconds)
	}
	line("")
	if f := s.Load; f != nil {
		line("| the load | |")
		line("|---|---|")
		line("| versions sent, beside duplicates and late ones | %d of %d documents, %d a second, for %d s |",
			f.Versions, f.Documents, f.PerSecond, f.Seconds)
		line("| documents whose newest version is in the sink | %d |", f.Documents)
		line("| documents that went back to an older version, dead letters | 0 |")
		line("| writes | %d |", f.Writes)
		line("| from sent to committed, p50, p99, latest | %s, %s, %s |", seconds(f.P50), seconds(f.P99), seconds(f.Max))
		if o.backend == onLocalStack { // processes of other backends cannot be reached
			for _, name := range slices.Sorted(maps.Keys(f.Killed)) {
				line("| processes of %s that were killed | %d |", name, f.Killed[name])
			}
		}
		line("| invocations that a timeout killed, while each alias pointed to a version with a timeout of 1 s | %d |", f.TimedOut)
		line("| deploys and rollbacks under load | %s |", deploys(f.Deploys))
		line("")
	}
	if len(s.Tests) > 0 {
		line("The end-to-end tests:")
		line("")
		line("```text output")
		line("%s", strings.Join(s.Tests, "\n"))
		line("```")
		line("")
	}
	if o.backend == onAWS {
		line("The estimate was $%.2f. Cost Explorer shows the bill a day later, by the tag `lull:stack` with", s.Dollars)
		line("the value `%s-express`.", o.stack)
		line("")
	}
	line("What the run left:")
	line("")
	for _, left := range s.Left {
		line("- %s.", left)
	}
	if len(s.Left) == 0 {
		line("- Nothing.")
	}
	line("")
	line("Next: [deploy to AWS](deploy.md).")
	return p.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func deploys(n int) string {
	if n == 0 {
		return "none: LocalStack cannot change a stack"
	}
	return fmt.Sprint(n)
}
