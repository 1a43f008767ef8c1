// SPDX-License-Identifier: Apache-2.0

package config

import "github.com/lullhq/lull/setting"

// Memory is the memory of the functions, in whole MB. AWS assigns processor time in proportion to
// memory: 1,769 MB correspond to one processor. 0 means the function's default (package names).
type Memory struct {
	Receive setting.Size `json:"receive"`
	Index   setting.Size `json:"index"`
	Prune   setting.Size `json:"prune"`
	DLQ     setting.Size `json:"dlq"`
}

// MemoryStep is the step in which a function's memory can be configured.
const MemoryStep = setting.MB

// The least and the most memory of a function.
const (
	minMemory = 128 * setting.MB
	maxMemory = 10 * setting.GB
)

var memoryRule = Rule{
	"memory", "The memory of a function is 0B, for the default, or at least 128MB, in whole MB.",
	func(c *Config, f *checker) {
		for _, of := range []struct {
			setting string
			size    setting.Size
		}{
			{"memory.receive", c.Memory.Receive},
			{"memory.index", c.Memory.Index},
			{"memory.prune", c.Memory.Prune},
			{"memory.dlq", c.Memory.DLQ},
		} {
			switch {
			case of.size > 0 && of.size < minMemory:
				f.fault(of.setting, of.size, "is less than a function has", "raise it to at least 128MB")
			case of.size%MemoryStep != 0:
				f.fault(of.setting, of.size, "is not in whole MB", "write a number of MB, such as 512MB")
			}
		}
	},
}
