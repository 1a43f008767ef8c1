// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// asProgram is a variable that makes the test binary run as the program.
const asProgram = "OUTOFTREE_LULL"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// settings is the path of the settings of the module's stack.
var settings = filepath.Join("..", "..", "lull.yaml")

// lake is a fake of S3 with the bucket that the settings name.
type lake struct {
	mu    sync.Mutex
	files map[string]string
}

func (l *lake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name, ours := strings.CutPrefix(r.URL.Path, "/pages-of-the-wiki")
	switch {
	case !ours:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodPut:
		text, _ := io.ReadAll(r.Body)
		l.files[strings.TrimPrefix(name, "/")] = string(text)
	default:
		type object struct{ Key string }
		var list struct {
			XMLName  xml.Name `xml:"ListBucketResult"`
			Contents []object
		}
		for name := range l.files {
			list.Contents = append(list.Contents, object{name})
		}
		slices.SortFunc(list.Contents, func(a, b object) int { return strings.Compare(a.Key, b.Key) })
		_ = xml.NewEncoder(w).Encode(list)
	}
}

// text returns the content of all files together.
func (l *lake) text() (all string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range l.files {
		all += text
	}
	return all
}

// lull returns a command that runs the program with this bucket.
func (l *lake) lull(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=yes", "AWS_ENDPOINT_URL="+server.URL, "AWS_REGION=eu-west-1",
		"AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=key", "AWS_REQUEST_CHECKSUM_CALCULATION=when_required")
	return cmd
}

// says runs the program, and fails the test unless it exits with this code and prints this text.
func says(t *testing.T, code int, text string, args ...string) {
	t.Helper()
	out, err := (&lake{}).lull(t, args...).CombinedOutput()
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if got != code || !strings.Contains(string(out), text) {
		t.Errorf("lull %s: exit %d, want %d and %q:\n%s", strings.Join(args, " "), got, code, text, out)
	}
}

func write(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	first  = `{"action":"saved","page":{"space":"handbook","title":"Leave","revision":1},"content":{"text":"4 weeks"}}`
	second = `{"action":"saved","page":{"space":"handbook","title":"Leave","revision":2},"content":{"text":"5 weeks"}}`
	broken = `{"action":"saved","page":{"space":"handbook","title":"Pay","revision":"x"},"content":{}}`
)

// A program that links a kind also checks the settings of the kind.
func TestTheSettingsAreChecked(t *testing.T) {
	t.Parallel()
	says(t, 0, "the settings are valid", "config", "check", "--deploy", settings)
	says(t, 0, "sinks.lake.suffix", "config", "show", "--defaults", settings)
	says(t, 3, "would become dead letters", "config", "check", settings, "--message", write(t, first, broken))
	text, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "lull.yaml")
	if err := os.WriteFile(wrong, append(text, "    suffix: x\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, 2, "sinks.lake.suffix", "config", "check", wrong)
}

// The stack runs in one process, and the commands operate it.
func TestTheStackIsRunAndOperated(t *testing.T) {
	t.Parallel()
	bucket := &lake{files: map[string]string{}}
	dev := bucket.lull(t, "dev", "--config", settings, "--events", write(t, first, second, broken), "--speed", "100",
		"--listen", "127.0.0.1:0")
	out, err := dev.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	dev.Stderr = os.Stderr
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = dev.Process.Kill()
		_ = dev.Wait()
	})
	listens, url := regexp.MustCompile(`search on (http://[^/]+)/`), ""
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found := listens.FindStringSubmatch(lines.Text()); found != nil {
			url = found[1]
		}
		if strings.Contains(lines.Text(), "everything has settled") {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // the program must not wait for a reader
	if url == "" {
		t.Fatalf("lull dev did not begin: %v", lines.Err())
	}
	if text := bucket.text(); !strings.Contains(text, `"5 weeks"`) || strings.Count(text, "\n") != 1 {
		t.Errorf("the bucket has %q, want the second revision once", text)
	}
	for _, tt := range []struct {
		code       int
		text, line string
	}{
		{0, "lake", "status"},
		{0, "version 2", "wait pages#handbook/Leave --version 2"},
		{0, "handbook/Leave", "list"},
		{0, "version_invalid", "dead list"},
		{0, "lake", "pause lake"},
		{0, "lake", "resume lake"},
		{0, "1 events sent", "publish " + write(t, strings.Replace(second, `"revision":2`, `"revision":3`, 1))},
		{0, "version 3", "wait pages#handbook/Leave --version 3"},
		{0, "version 3 was written", "explain pages#handbook/Leave"},
		{0, "dropped: 1", "dead drop --all --yes"},
	} {
		says(t, tt.code, tt.text, append(strings.Fields(tt.line), "--dev", url)...)
	}
}
