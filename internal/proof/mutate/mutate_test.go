// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/proof/tree"
)

var (
	most   = flag.Int("mutants", 0, "how many edits to test; 0 tests none")
	seed   = flag.Uint64("seed", 1, "the seed that picks the edits")
	budget = flag.Duration("for", time.Hour, "start no new edit after this time")
	write  = flag.Bool("write", false, "write docs/mutants.md")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// core lists the folders whose code is edited.
var core = []string{
	"internal/shard", "internal/pipeline/receive", "internal/pipeline/index", "internal/pipeline/prune", "internal/pipeline/dlq", "internal/pipeline/redrive",
	"internal/pipeline/reconcile", "internal/seam/rows", "internal/seam/flight",
}

// judges are tests that run after the tests of the edited package: the model's comparison of the
// conditions, the suite of the in-memory store, and simulated runs.
var judges = [][]string{
	{"-run", "Condition|Judge|Decide", "./internal/proof/model"},
	{"./internal/local/memory"},
	{
		"-run", "^(TestEveryPromiseHoldsInEveryWorld|TestEveryPromiseHoldsWhereUnchangedDocumentsAreKept|" +
			"TestEveryStepOfADocumentIsAStepOfTheModel)$", "./internal/simulation/sim",
	},
}

func TestEditsAreSmallAndBuildAgain(t *testing.T) {
	t.Parallel()
	src := []byte("package p\n\nfunc f(a, b int) int {\n\tif a < b && !g(a) {\n\t\ta = 7\n\t\tg(a)\n\t}\n" +
		"\treturn a + b\n}\n")
	edits, err := Edits("p.go", src)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range edits {
		got = append(got, fmt.Sprintf("%d %s>%s", e.Line, e.From, e.To))
		if out := e.Apply(src); string(out[:e.Offset]) != string(src[:e.Offset]) || !strings.HasSuffix(string(out),
			string(src[e.Offset+len(e.From):])) {
			t.Errorf("%s changes more than its place:\n%s", e, out)
		}
	}
	want := []string{
		"4 a < b && !g(a)>!(a < b && !g(a))", "4 &&>||", "4 <><=", "4 !>", "5 a = 7>", "5 7>8", "6 g(a)>", "8 +>-",
	}
	if !slices.Equal(got, want) {
		t.Errorf("edits %q, want %q", got, want)
	}
}

// all returns the edits of the core, always in the same order.
func all(t *testing.T) (edits []Edit) {
	t.Helper()
	files := tree.Files(t)
	for _, dir := range core {
		for _, name := range files {
			if path.Dir(name) != dir || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				continue
			}
			some, err := Edits(name, []byte(tree.Text(t, name)))
			if err != nil {
				t.Fatal(err)
			}
			edits = append(edits, some...)
		}
	}
	return edits
}

// fate is the outcome of testing an edit.
type fate byte

const (
	survived fate = iota
	killed
	unbuilt
)

// sound runs the tests without an edit. If a test failed without an edit, every edit would count as
// killed.
func sound(t *testing.T) {
	t.Helper()
	every := slices.Clone(judges)
	for _, dir := range core {
		every = append(every, []string{"./" + dir})
	}
	if f, by := try(t, Edit{File: "internal/shard/turn.go"}, every...); f != survived {
		t.Fatalf("%s fails without an edit: nothing can be said of edits", by)
	}
}

// try runs the tests with an edit. by is the package whose tests failed.
func try(t *testing.T, e Edit, judges ...[]string) (f fate, by string) {
	t.Helper()
	top, err := filepath.Abs(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	edited, overlay := filepath.Join(t.TempDir(), "edited.go"), filepath.Join(t.TempDir(), "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(top, e.File): edited}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(edited, e.Apply([]byte(tree.Text(t, e.File))), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, judge := range judges {
		args := []string{"test", "-short", "-vet=off", "-failfast", "-timeout", "2m", "-overlay", overlay}
		cmd := exec.CommandContext(context.Background(), "go", append(args, judge...)...)
		cmd.Dir = top
		// A failure that a property test finds with an edit must not be saved as a test case.
		cmd.Env = append(os.Environ(), "RAPID_NOFAILFILE=true")
		out, err := cmd.CombinedOutput()
		switch {
		case strings.Contains(string(out), "[build failed]"):
			return unbuilt, judge[len(judge)-1]
		case err != nil:
			return killed, judge[len(judge)-1]
		}
	}
	return survived, ""
}

// TestSample tests as many edits as -mutants says. TestSample never fails because of an edit. A
// developer looks at the edits that survive, and adds a test or explains in equivalent.txt why the
// edit makes no difference.
func TestSample(t *testing.T) {
	if *most == 0 {
		t.Skip("without -mutants nothing is edited")
	}
	excuses := equivalent(t)
	sound(t)
	edits := all(t)
	draw := rand.New(rand.NewPCG(*seed, 0x6d757461))
	began, by := time.Now(), map[string]int{}
	var lives []string
	judged, dead, same := 0, 0, 0
	for _, i := range draw.Perm(len(edits)) {
		if judged == *most || time.Since(began) > *budget {
			break
		}
		e := edits[i]
		own := []string{"./" + path.Dir(e.File)}
		f, judge := try(t, e, append([][]string{own}, judges...)...)
		if f == unbuilt {
			continue
		}
		judged++
		reason, excused := excuses[e.excuse()]
		switch {
		case f == killed:
			dead++
			by[judge]++
		case excused:
			same++
			t.Logf("equivalent: %s: %s", e, reason)
		default:
			lives = append(lives, e.String())
			t.Logf("survives: %s", e)
		}
	}
	t.Logf("%d of %d edits judged in %s: %d killed, %d equivalent, %d survive; by %v", judged, len(edits),
		time.Since(began).Round(time.Second), dead, same, len(lives), by)
	if *write && judged > 0 {
		report(t, len(edits), judged, dead, same, by, lives)
	}
}

// excuse returns the key of an edit in equivalent.txt. The key contains the text of the line,
// because line numbers change.
func (e Edit) excuse() string {
	return strings.Join([]string{e.File, strings.TrimSpace(e.Source), e.From + " becomes " + e.To}, "\t")
}

// equivalent reads the edits that make no difference, each with its reason.
func equivalent(t *testing.T) map[string]string {
	t.Helper()
	excuses := map[string]string{}
	for line := range strings.Lines(tree.Text(t, "internal/proof/mutate/testdata/equivalent.txt")) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 || fields[3] == "" {
			t.Fatalf("equivalent.txt: %q: want file, line, edit and reason, with tabs between", line)
		}
		excuses[strings.Join(fields[:3], "\t")] = fields[3]
	}
	return excuses
}

// report writes the page. Only the part between its marks is generated.
func report(t *testing.T, of, judged, dead, same int, by map[string]int, lives []string) {
	t.Helper()
	var b strings.Builder
	const sum = "Seed %d: %d of %d edits. %d were killed (%.0f %%), %d are equivalent, %d survived.\n\n"
	fmt.Fprintf(&b, sum, *seed, judged, of, dead, 100*float64(dead)/float64(max(judged-same, 1)), same, len(lives))
	b.WriteString("| killed by the tests of | edits |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(&b, "| `%s` | %d |\n", strings.TrimPrefix(name, "./"), by[name])
	}
	b.WriteString("\n| survived |\n|---|\n")
	for _, l := range lives {
		fmt.Fprintf(&b, "| %s |\n", strings.ReplaceAll(strings.Join(strings.Fields(l), " "), "|", "\\|"))
	}
	b.WriteString("\n")
	tree.Generated(t, "docs/mutants.md", "sample", b.String(), true)
}
