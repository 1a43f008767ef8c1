package command

import "github.com/spf13/cobra"

// indexCommand has the verbs about an index that lull keeps right.
func indexCommand(std *streams, t *target) *cobra.Command {
	return parent(&cobra.Command{
		Use: "index", Short: "Check and repair what a sink holds, and prepare it",
		Long: "An index is what a sink holds of a collection. `lull index check` only reads. `lull index repair` finds " +
			"the same differences and removes them.",
	}, indexCheckCommand(std, t), indexRepairCommand(std, t), installTemplateCommand(std, t))
}
