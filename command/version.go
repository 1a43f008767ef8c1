// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/deploy/version"
	"github.com/lullhq/lull/internal/terminal"
)

// versionCommand prints which build this is, as --version does.
func versionCommand(std *streams) *cobra.Command {
	return define(&cobra.Command{
		Use: "version", Short: "Say which build of lull this is", Args: cobra.NoArgs,
		Long: "Prints the version, the commit, the version of Go and the platform, as --version does. Name them " +
			"when you report a bug.",
		RunE: func(*cobra.Command, []string) error {
			b := version.Of()
			return std.print(b, func(w io.Writer) { terminal.Printf(w, "lull %s\n", b) })
		},
	}, ends{exitOK: "it was printed", exitFailed: "the answer could not be written", exitUsage: "usage"},
		std.outputFlag())
}
