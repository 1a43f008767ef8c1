// SPDX-License-Identifier: Apache-2.0

// Command cmd synthesises the CloudFormation template of a lull stack.
//
// `cdk deploy --app` runs it. It also runs without the CDK command line: CDK_OUTDIR says where to
// write. -help lists all its options. Faults are printed all at once, before anything is
// synthesised.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/infra"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/release"
	_ "github.com/lullhq/lull/sink/builtin/local" // so that faults distinguish local kinds from unknown kinds
)

func main() {
	if len(os.Args) > 1 {
		usage(os.Stdout)
		if os.Args[1] != "-help" && os.Args[1] != "--help" && os.Args[1] != "-h" {
			os.Exit(2)
		}
		return
	}
	if err := run(os.LookupEnv); err != nil {
		report(os.Stderr, err)
		os.Exit(1)
	}
}

// run synthesises the stack, or says why not.
func run(lookup func(string) (string, bool)) error {
	defer jsii.Close() // importing CDK unpacks its runtime, even if nothing is synthesised
	if path, _ := lookup(optTemplate.env); path != "" {
		if err := needNode(lookup); err != nil {
			return err
		}
		return writeTemplate(path, lookup)
	}
	o, err := read(lookup)
	if o == nil {
		return err
	}
	if err := errors.Join(err, o.validate(), needNode(lookup)); err != nil {
		return err
	}
	dir, _ := lookup(envOutDir) // without a folder, CDK would write to a temporary folder
	if dir, err = filepath.Abs(cmp.Or(dir, "cdk.out")); err != nil {
		return err
	}
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: &dir})
	lull, err := o.build(app)
	if err != nil {
		return err
	}
	out := app.Synth(nil)
	if !o.props.StateOnly {
		return nil
	}
	text, err := json.MarshalIndent(lull.Identifiers(*o.env.Account, *o.env.Region), "", "  ")
	if err != nil {
		return fmt.Errorf("write import.json: %w", err)
	}
	return os.WriteFile(filepath.Join(*out.Directory(), "import.json"), text, 0o600)
}

// needNode returns an error if Node is missing, because CDK would panic without Node. The variable
// JSII_NODE may name another program.
func needNode(lookup func(string) (string, bool)) error {
	program, _ := lookup(envNode)
	if _, err := exec.LookPath(cmp.Or(program, "node")); err != nil {
		return fmt.Errorf("node (%w): CDK runs in it: install Node 18 or later, from your packages or nodejs.org", err)
	}
	return nil
}

// writeTemplate writes the template of the named release, otherwise of this program's release.
func writeTemplate(path string, lookup func(string) (string, bool)) error {
	version, _ := lookup(optRelease.env)
	template, err := infra.Template(cmp.Or(version, release.Own()))
	if err != nil {
		return err
	}
	return os.WriteFile(path, template, 0o644)
}

// build makes the stack. It turns the valid options into CDK constructs, and then validates the
// upstreams among them.
func (o *options) build(app awscdk.App) (*infra.Lull, error) {
	c := o.props.Config
	stack := awscdk.NewStack(app, jsii.String(c.Stack), &awscdk.StackProps{
		StackName:             jsii.String(c.Stack),
		Description:           jsii.String("lull: debounced indexing"),
		Env:                   o.env,
		TerminationProtection: jsii.Bool(o.props.Protect),
	})
	o.complete(stack)
	if err := o.validate(); err != nil {
		return nil, err
	}
	return infra.NewLull(stack, "Lull", o.props), nil
}

// validate finds the faults of the Props, for the stack's region and account.
func (o *options) validate() error {
	if o.env == nil {
		return o.props.Validate()
	}
	return o.props.ValidateIn(*o.env.Account, *o.env.Region)
}

// report prints each fault on a separate line.
func report(w io.Writer, err error) {
	var lines []string
	for _, e := range config.Apart(err) {
		lines = append(lines, e.Error())
	}
	_, _ = fmt.Fprintf(w, "lull: nothing was synthesised: %s\n", plural(len(lines), "fault"))
	for _, line := range lines {
		_, _ = fmt.Fprintln(w, "  "+line)
	}
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
