// SPDX-License-Identifier: Apache-2.0

package command

import "github.com/spf13/cobra"

// indexCommand has the commands that check, repair and prepare an index.
func indexCommand(std *streams, t *target) *cobra.Command {
	return parent(&cobra.Command{
		Use: "index", Short: "Check, repair and prepare the indices of the sinks",
		Long: "An index has the documents of a collection in a sink. `lull index check` only reads. `lull index repair` " +
			"finds the same differences and removes them.",
	}, indexCheckCommand(std, t), indexRepairCommand(std, t), installTemplateCommand(std, t))
}
