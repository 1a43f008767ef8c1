// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// completionCommand prints what a shell needs to complete commands, flags and their values.
func completionCommand(std *streams) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return define(&cobra.Command{
		Use: "completion " + strings.Join(shells, "|"), Short: "Print what your shell needs to complete commands and keys",
		Long: "Completes commands, flags, their values, and keys and dead letters by asking the stack. It waits at most " +
			"a second for the stack, and offers nothing without an answer. It offers only keys that need no quotes in a " +
			"shell. For bash install the package bash-completion first. Load it once, or in the file that your shell " +
			"reads when it starts:\n\n" +
			"  source <(lull completion bash)\n" +
			"  source <(lull completion zsh)\n" +
			"  lull completion fish | source\n" +
			"  lull completion powershell | Out-String | Invoke-Expression",
		ValidArgs: shells, Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(std.out, true)
			case "zsh":
				return root.GenZshCompletion(std.out)
			case "fish":
				return root.GenFishCompletion(std.out, true)
			}
			return root.GenPowerShellCompletionWithDesc(std.out)
		},
	}, ends{exitOK: "it was printed", exitFailed: "the answer could not be written", exitUsage: "usage"})
}

// completer offers values.
type completer func(c *cobra.Command, typed string) []string

// complete gives every command of the tree its completions. It finds them by the names of flags,
// and by the names of arguments in the usage.
func (t *target) complete(root *cobra.Command) {
	words := func(list ...string) completer { return func(*cobra.Command, string) []string { return list } }
	flags := map[string]completer{
		"output": words("table", "json"), "color": words(colourNever, colourAuto, colourAlways),
		"lane": words(string(flight.Live), string(flight.Bulk)), "faults": words("none", "standard", "swarm"),
		"reason": words(strings.Split(deadletter.Reasons(), ", ")...),
		"state":  words(string(deadletter.Parked), string(deadletter.Redriven)),
		"key":    t.someKeys, "source": t.someSources, "collection": t.someCollections,
	}
	special := map[string]completer{
		"lull list --state": words(listedStates()...), "lull new --source": words(source.Kinds()...),
		"lull new --sink": words(sink.Kinds()...),
	}
	args := map[string]completer{
		"KEY": t.someKeys, "ID": t.someLetters, "COLLECTION": t.someCollections, "SINK": t.someSinks,
	}
	for _, c := range append(allCommands(root), root) {
		register := func(f *pflag.Flag) {
			offer, ok := special[c.CommandPath()+" --"+f.Name]
			if !ok {
				offer, ok = flags[f.Name]
			}
			if ok && f.Value.Type() != "bool" {
				_ = c.RegisterFlagCompletionFunc(f.Name, offer.shell(-1)) // it fails if the flag already has one
			}
			if f.Name == "config" {
				f.Annotations = map[string][]string{cobra.BashCompFilenameExt: {"yaml", "yml"}}
			}
		}
		c.LocalFlags().VisitAll(register)
		first := regexp.MustCompile(`[A-Z]+`).FindString(strings.TrimPrefix(c.Use, c.Name()))
		if offer, ok := args[first]; ok {
			c.ValidArgsFunction = offer.shell(0)
		}
	}
}

// allCommands returns the commands below c.
func allCommands(c *cobra.Command) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		all = append(append(all, sub), allCommands(sub)...)
	}
	return all
}

// plain matches text that is safe in every shell. A sender chooses the ids of documents, and some
// shells would run a $(command) in an id.
var plain = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./:#@+=,%-]*$`)

// shell returns the function that cobra needs. With more than this number of arguments, the
// function offers nothing; -1 is for a flag.
func (f completer) shell(arguments int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if arguments >= 0 && len(args) > arguments {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		offers := slices.DeleteFunc(slices.Clone(f(c, typed)), func(offer string) bool {
			word, _, _ := strings.Cut(offer, "\t")
			return !plain.MatchString(word) || !strings.HasPrefix(word, typed)
		})
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
}

// Limits of a request. A person is waiting for the completion.
const (
	patience = time.Second
	offered  = 200
)

// some asks the stack, and offers nothing if it does not answer in time.
func (t *target) some(c *cobra.Command, ask func(ctx context.Context, api operate.API) ([]string, error)) []string {
	if t.check(c.Flags()) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	api, done, err := t.open(ctx, config.KindsAny)
	if err != nil {
		return nil
	}
	defer done()
	offers, err := ask(ctx, api)
	if err != nil {
		return nil
	}
	return offers
}

func (t *target) someKeys(c *cobra.Command, typed string) []string {
	return t.some(c, func(ctx context.Context, api operate.API) (offers []string, err error) {
		page, err := api.Documents(ctx, operate.DocumentFilter{Contains: typed, Limit: offered})
		for _, d := range page.Documents {
			offers = append(offers, fmt.Sprintf("%s\t%s", d.Key, d.State))
		}
		// A document that is only a dead letter may have no row.
		letters, letterErr := api.LetterPage(ctx, operate.LetterQuery{Limit: offered})
		for _, l := range letters.Letters {
			if !slices.ContainsFunc(page.Documents, func(d operate.DocumentLine) bool { return d.Key == l.Key }) {
				offers = append(offers, fmt.Sprintf("%s\tdead", l.Key))
			}
		}
		slices.Sort(offers)
		return slices.Compact(offers), cmp.Or(err, letterErr)
	})
}

func (t *target) someLetters(c *cobra.Command, _ string) []string {
	return t.some(c, func(ctx context.Context, api operate.API) (offers []string, err error) {
		page, err := api.LetterPage(ctx, operate.LetterQuery{Limit: offered})
		for _, l := range page.Letters {
			offers = append(offers, fmt.Sprintf("%s\t%s", l.ID, l.Reason))
		}
		return offers, err
	})
}

func (t *target) someSinks(c *cobra.Command, _ string) []string {
	return t.some(c, func(ctx context.Context, api operate.API) (offers []string, err error) {
		s, err := api.Status(ctx)
		for _, k := range s.Sinks {
			offers = append(offers, k.Sink)
		}
		return offers, err
	})
}

// settings returns the settings that the command would read, if they can be read.
func (t *target) settings(c *cobra.Command) (config.Config, bool) {
	path := t.config
	if own := c.LocalFlags().Lookup("config"); own != nil {
		path = own.Value.String()
	}
	cfg, err := yamlfile.Load(path)
	return cfg, err == nil
}

func (t *target) someSources(c *cobra.Command, _ string) []string {
	if cfg, ok := t.settings(c); ok {
		return slices.Sorted(maps.Keys(cfg.Sources))
	}
	return []string{"native", "govuk"} // the kinds that dev takes without settings
}

func (t *target) someCollections(c *cobra.Command, _ string) []string {
	cfg, ok := t.settings(c)
	if !ok {
		return nil
	}
	names := append(slices.Sorted(maps.Keys(cfg.Collections)), cfg.DefaultCollection)
	slices.Sort(names)
	return slices.Compact(names)
}
