// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"

	"golang.org/x/sys/windows"
)

// showColours makes a console obey the sequences of colours, which Windows leaves to the program.
func showColours(f *os.File) bool {
	var mode uint32
	h := windows.Handle(f.Fd())
	return windows.GetConsoleMode(h, &mode) == nil &&
		windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
