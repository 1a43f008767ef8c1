// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes this machine, without its name.
func Machine() string {
	model := runtime.GOARCH
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if name, value, found := strings.Cut(s.Text(), ":"); found && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s/%s, %d processors (%s), %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model,
		runtime.Version())
}

// Load returns the load average of the last minute from the kernel.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}
