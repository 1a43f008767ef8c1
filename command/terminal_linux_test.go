// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lullhq/lull/internal/operator/operate"
)

// pty is a terminal: what a program writes to its end, a test reads, and the other way round.
type pty struct {
	*screen
	keyboard, end *os.File
}

// newPTY opens a terminal that is so many columns wide.
func newPTY(t *testing.T, columns uint16) pty {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminal can be opened here: ", err)
	}
	fd := int(keyboard.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	end, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: columns}); err != nil {
		t.Fatal(err)
	}
	p := pty{newScreen(), keyboard, end}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(p.screen, keyboard) // ends with an error when the other end is closed
		p.screen.end()
	}()
	t.Cleanup(func() {
		_ = end.Close()
		<-done
		_ = keyboard.Close()
	})
	return p
}

// run runs a command in the terminal. What it prints there follows what was printed before.
func (p pty) run(t *testing.T, args ...string) exitCode {
	t.Helper()
	return newApp(p.end, p.end, p.end).run(t.Context(), args)
}

func TestAnswersInATerminalFitAndHaveColours(t *testing.T) {
	s := settled(t, "--events", write(t, put("a", "x", "{}")), "--speed", "100")
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "")
	for name, tt := range map[string]struct {
		args   []string
		env    [2]string
		colour bool
		cut    bool
	}{
		"in a terminal":         {colour: true, cut: true},
		"with --wide":           {args: []string{"--wide"}, colour: true},
		"with NO_COLOR":         {env: [2]string{"NO_COLOR", "1"}, cut: true},
		"in a dumb terminal":    {env: [2]string{"TERM", "dumb"}, cut: true},
		"with --color never":    {args: []string{"--color", "never"}, cut: true},
		"NO_COLOR is overruled": {args: []string{"--color", "always"}, env: [2]string{"NO_COLOR", "1"}, colour: true, cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.env[0] != "" {
				t.Setenv(tt.env[0], tt.env[1])
			}
			p := newPTY(t, 100)
			if code := p.run(t, append([]string{"dead", "list", "--dev", s.url}, tt.args...)...); code != exitOK {
				t.Fatalf("exit %d: %s", code, p)
			}
			row := p.await(t, `(?m)^([0-9A-F]\S+ .*version_invalid .*content#a .*)\r?$`)
			if got := strings.Contains(p.String(), "\x1b["); got != tt.colour {
				t.Errorf("colours: got %t, want %t: %q", got, tt.colour, p)
			}
			if got := strings.Contains(row, "…"); got != tt.cut {
				t.Errorf("cut: got %t, want %t: %q", got, tt.cut, row)
			}
		})
	}
	a := s.ask("dead", "list")
	if a.want(t, "in a pipe", exitOK, "version_invalid"); strings.Contains(a.out, "\x1b[") || strings.Contains(a.out, "…") {
		t.Errorf("in a pipe: got %q", a.out)
	}
	a = s.ask("dead", "list", "--color", "always")
	if a.want(t, "in a pipe with colours", exitOK, "\x1b[1mID\x1b[0m"); strings.Contains(a.out, "…") {
		t.Errorf("in a pipe with colours: got %q", a.out)
	}
	s.ask("status", "--color", "sometimes").want(t, "another value", exitUsage, "--color sometimes: want never, auto or always")
}

// What is lost for good is asked about in a terminal, once, and only where it is more than what the
// command names.
func TestWhatIsLostIsConfirmed(t *testing.T) {
	t.Parallel()
	s := settled(t, "--events", write(t, put("a", "4", "{}"), put("b", "x", "{}"), put("c", "x", "{}"), put("d", "x", "{}"),
		put("e", "x", "{}")), "--speed", "100")
	letters := parsed[[]operate.Letter](t, s.ask("dead", "list", "-o", "json"))
	for _, tt := range []struct {
		name    string
		args    []string
		asks    string // nothing where it does not ask
		answer  string
		code    exitCode
		letters int // that remain
	}{
		{"no is an answer", []string{"dead", "drop", "--all"}, "Drop 4 dead letters?", "n", exitFailed, 4},
		{"nothing is no", []string{"dead", "drop", "--all"}, "Drop 4 dead letters?", "", exitFailed, 4},
		{"a dry run", []string{"dead", "drop", "--all", "--dry-run"}, "", "", exitOK, 4},
		{"one by its id", []string{"dead", "drop", letters[0].ID}, "", "", exitOK, 3},
		{"one by a filter", []string{"dead", "drop", "--key", string(letters[1].Key)}, "", "", exitOK, 2},
		{"redrive", []string{"dead", "redrive", "--all", "--dry-run"}, "", "", exitOK, 2},
		{"yes", []string{"dead", "drop", "--reason", "version_invalid"}, "Drop 2 dead letters?", "y", exitOK, 0},
		{"reset, no", []string{"reset", "content#a", "--to", "2"}, "Accept versions of content#a from 2 on again", "no", exitFailed, 0},
		{"reset, yes", []string{"reset", "content#a", "--to", "2"}, "Accept versions of content#a from 2 on again", "YES", exitOK, 0},
	} {
		p := newPTY(t, 200)
		code := make(chan exitCode)
		go func() { code <- p.run(t, append(tt.args, "--dev", s.url)...) }()
		if tt.asks != "" {
			p.await(t, regexp.QuoteMeta(tt.asks)+`.* \[y/N\]`)
			fmt.Fprintln(p.keyboard, tt.answer)
		}
		if got := <-code; got != tt.code || strings.Contains(p.String(), "[y/N]") != (tt.asks != "") {
			t.Errorf("%s: exit %d, want %d: %s", tt.name, got, tt.code, p)
		}
		if tt.code == exitFailed {
			p.await(t, "nothing was changed")
			if strings.Contains(p.String(), "selected") {
				t.Errorf("%s: said %q", tt.name, p)
			}
		}
		if left := parsed[[]operate.Letter](t, s.ask("dead", "list", "-o", "json")); len(left) != tt.letters {
			t.Errorf("%s: %d dead letters remain, want %d", tt.name, len(left), tt.letters)
		}
	}
}

func TestStatusIsWatched(t *testing.T) {
	s := settled(t, "--events", write(t, put("a", "x", "{}")), "--speed", "100")
	t.Setenv("TERM", "xterm-256color")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	p, code := newPTY(t, 100), make(chan exitCode)
	go func() {
		code <- newApp(p.end, p.end, p.end).run(ctx, []string{"status", "--watch", "--every", "250ms", "--dev", s.url})
	}()
	p.await(t, `(?s)every 250ms: Ctrl-C ends it.*search-live.*1 dead letters parked.*\x1b\[J.*search-live.*\x1b\[J`)
	s.stopped()
	p.await(t, `(?s)no answer: .*search-live.*1 dead letters parked`)
	interrupt()
	if got := <-code; got != exitOK {
		t.Errorf("exit %d: %s", got, p)
	}
	if n := strings.Count(p.String(), "\x1b[H"); n < 3 || strings.Count(p.String(), "\x1b[J") != n {
		t.Errorf("drawn %d times: %q", n, p)
	}
}

// Ctrl-C reaches the program alone, and not make. When the program has ended, the next key belongs
// to whatever comes next.
func TestMakeHandsOverCtrlCAndNoOtherKey(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ args, awaits, keys, says string }{
		"it ends by itself": {args: "dev --exit-when-idle --events " + write(t), says: "0 messages"},
		"Ctrl-C":            {"dev --listen 127.0.0.1:0 --events " + write(t), "everything has settled", "x\x03", "0 messages"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := write(t, "try:\n\t@$(as_a_job) "+program+" "+tt.args+"\n")
			p := newPTY(t, 100)
			// The shell of the terminal stays, and reads the next line.
			c := exec.CommandContext(t.Context(), "bash", "-c", "make -s -C .. -f Makefile -f "+rules+` try
				echo "ENDED $?"; read -r next; echo "got [$next]"`)
			c.Env = append(os.Environ(), asProgram+"=1")
			c.Stdin, c.Stdout, c.Stderr = p.end, p.end, p.end
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			if tt.awaits != "" {
				p.await(t, tt.awaits)
				fmt.Fprint(p.keyboard, tt.keys)
			}
			if code := p.await(t, `ENDED (\d+)`); code != "0" || !strings.Contains(p.String(), tt.says) {
				t.Errorf("make: exit %s: %s", code, p)
			}
			fmt.Fprintln(p.keyboard, "hello")
			if next := p.await(t, `got \[(.*)]`); next != "hello" {
				t.Errorf("the next program read %q", next)
			}
			if err := c.Wait(); err != nil {
				t.Error(err)
			}
			if strings.Contains(p.String(), "rror") || strings.Contains(p.String(), "erminated") {
				t.Errorf("make said %s", p)
			}
		})
	}
}
