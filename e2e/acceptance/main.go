// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lullhq/lull/e2e/ground"
)

// The backends that acceptance runs on.
const (
	onAWS        = "aws"
	onLocalStack = "localstack"
	onMinistack  = "ministack"
)

const defaultStack = "lull-acceptance"

// options are what the operator asks for.
type options struct {
	backend string
	account string
	stack   string
	search  string
	tests   string
	page    string
	length  time.Duration
	rate    int
	yes     bool
	clean   bool
}

func read(args []string, out io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("acceptance", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.backend, "on", onAWS, "where it runs: aws, localstack or ministack")
	flags.StringVar(&o.account, "account", "", "the `ID` of the account that your credentials belong to; needed on AWS")
	flags.StringVar(&o.stack, "stack", defaultStack, "the `NAME` of the stack, and the beginning of all other names")
	flags.StringVar(&o.search, "search", "", "the `URL` of an OpenSearch domain that may be written to; without it, a small one is made on AWS")
	flags.StringVar(&o.tests, "tests", portable, "the end-to-end tests to run, as a `PATTERN`; none for no tests")
	flags.StringVar(&o.page, "page", "", "the `FILE` that the result is written to, such as docs/acceptance.md")
	flags.DurationVar(&o.length, "for", 10*time.Minute, "how long the load lasts")
	flags.IntVar(&o.rate, "load", 20, "the load in `EVENTS` a second, 1 to 100")
	flags.BoolVar(&o.yes, "yes", false, "do not ask")
	flags.BoolVar(&o.clean, "clean", false, "only remove what an earlier run left")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q is not an option", flags.Arg(0))
	case o.backend != onAWS && o.backend != onLocalStack && o.backend != onMinistack:
		return o, fmt.Errorf("-on %q: aws, localstack or ministack", o.backend)
	case o.backend == onAWS && !accountID.MatchString(o.account):
		return o, fmt.Errorf("-account %q: name the account that your credentials belong to, by its 12 digits: "+
			"make acceptance ACCOUNT=111122223333", o.account)
	case !stackName.MatchString(o.stack):
		return o, fmt.Errorf("-stack %q: begin with lull- and use at most 24 small letters, digits and hyphens", o.stack)
	case o.rate < 1 || o.rate > 100:
		return o, fmt.Errorf("-load %d: 1 to 100 events a second", o.rate)
	case o.length < 20*time.Second || o.length > 2*time.Hour:
		return o, fmt.Errorf("-for %s: 20s to 2h", o.length)
	}
	return o, nil
}

func main() {
	o, err := read(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err == nil {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "acceptance:", err)
		os.Exit(1)
	}
}

// environment sets the variables that this program and the programs that it starts read. On AWS it
// removes the other variables of lull: the operator may have set them for another stack, such as
// LULL_STREAMS and LULL_PROTECT.
func (o options) environment() error {
	var errs []error
	for _, text := range os.Environ() {
		name, _, _ := strings.Cut(text, "=")
		keep := name == "LULL_E2E" || name == "LULL_E2E_ROOT" || name == "LULL_E2E_WORK" || name == "LULL_E2E_DIST"
		if strings.HasPrefix(name, "LULL_") && !keep && o.backend == onAWS || name == ground.EnvAccount {
			errs = append(errs, os.Unsetenv(name))
		}
	}
	// The names of everything that is made begin with the stack's name, also in the end-to-end tests.
	errs = append(errs, os.Setenv(ground.EnvStack, o.stack))
	if o.backend == onAWS {
		errs = append(errs, os.Setenv(ground.EnvAccount, o.account),
			os.Setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"))
	}
	return errors.Join(errs...)
}

// command returns the command that continues a run with the same options, and with more.
func (o options) command(more string) string {
	args := more
	if o.search != "" {
		args = strings.TrimSpace("-search " + o.search + " " + args)
	}
	if o.stack != defaultStack {
		args = strings.TrimSpace("-stack " + o.stack + " " + args)
	}
	if args == "" {
		return "make acceptance ACCOUNT=" + o.account
	}
	return "make acceptance ACCOUNT=" + o.account + " ARGS='" + args + "'"
}

func run(o options) error {
	if err := o.environment(); err != nil {
		return err
	}
	g, err := ground.Open()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := &runner{options: o, g: g, out: os.Stdout, file: filepath.Join(g.Work, o.stack+".json")}
	r.plan = r.steps()
	if err := r.begin(ctx); err != nil {
		return err
	}
	if !o.yes && !agreed(os.Stdin, r.out) {
		return errors.New("nothing was done")
	}
	if o.clean {
		return r.remove(ctx)
	}
	err = r.perform(ctx)
	if ctx.Err() != nil {
		stop() // a second Ctrl-C ends the program
		fmt.Fprintln(r.out, "interrupted: removing everything; a second Ctrl-C stops that")
		if err := r.remove(context.Background()); err != nil {
			return fmt.Errorf("interrupted: %w\nNot everything is removed. Remove it with `%s`", err, o.command("-clean"))
		}
		return errors.New("interrupted")
	}
	if err != nil {
		return fmt.Errorf("%w\nEverything is still there. Continue with `%s`, or remove it with `%s`",
			err, o.command(""), o.command("-clean"))
	}
	return nil
}

// agreed asks the operator.
func agreed(in io.Reader, out io.Writer) bool {
	fmt.Fprint(out, "Continue? [y/N] ")
	line, _ := bufio.NewReader(in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
