// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// option is a flag of a command.
type option struct {
	name  string // such as "dry-run", or with its short form "yes,y"
	to    any    // the variable that receives the value; its current value is the default
	usage string
	rules []rule
}

// rule checks a flag before the command runs.
type rule func(f *pflag.Flag) error

func flag(name string, to any, usage string, rules ...rule) option {
	return option{name, to, usage, rules}
}

// add adds the flag to a command.
func (o option) add(f *pflag.FlagSet) {
	name, letter, _ := strings.Cut(o.name, ",")
	switch to := o.to.(type) {
	case *bool:
		f.BoolVarP(to, name, letter, *to, o.usage)
	case *string:
		f.StringVarP(to, name, letter, *to, o.usage)
	case *[]string:
		f.StringArrayVarP(to, name, letter, *to, o.usage)
	case *int:
		f.IntVarP(to, name, letter, *to, o.usage)
	case *int64:
		f.Int64VarP(to, name, letter, *to, o.usage)
	case *uint64:
		f.Uint64VarP(to, name, letter, *to, o.usage)
	case *float64:
		f.Float64VarP(to, name, letter, *to, o.usage)
	case *time.Duration:
		f.DurationVarP(to, name, letter, *to, o.usage)
	case func(string) error:
		f.FuncP(name, letter, o.usage, to)
	}
}

// flags gives a command its flags, and checks their rules before the command runs.
func flags(c *cobra.Command, options ...option) *cobra.Command {
	for _, o := range options {
		o.add(c.Flags())
	}
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		for _, o := range options {
			name, _, _ := strings.Cut(o.name, ",")
			for _, rule := range o.rules {
				if err := rule(c.Flags().Lookup(name)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return c
}

// between refuses a given value outside least to most; want describes a good one.
func between[N cmp.Ordered](v *N, least, most N, want string) rule {
	return func(f *pflag.Flag) error {
		if !f.Changed || *v >= least && *v <= most {
			return nil
		}
		return usagef("--%s %s: want %s", f.Name, f.Value, want)
	}
}

// perSecond checks a rate: a number for each second, or 0 for no limit.
func perSecond(v *float64, of string) rule {
	return between(v, 0, math.MaxFloat64, of+" a second, or 0 for no limit")
}

// sends checks how many messages are sent a second.
func sends(v *float64) rule {
	return between(v, math.SmallestNonzeroFloat64, 1e6, "messages a second, above 0")
}

// someTime refuses a duration that is not above 0.
func someTime(v *time.Duration) rule { return between(v, 1, math.MaxInt64, "a time above 0") }

// oneOf refuses a value that is not one of the words.
func oneOf(want string, words ...string) rule {
	return func(f *pflag.Flag) error {
		if !f.Changed || slices.Contains(words, f.Value.String()) {
			return nil
		}
		return usagef("--%s %s: want %s", f.Name, f.Value, want)
	}
}

// needed refuses a command without the flag. what says which value to give.
func needed(what string) rule {
	return func(f *pflag.Flag) error {
		if f.Changed {
			return nil
		}
		return usagef("--%s: %s", f.Name, what)
	}
}
