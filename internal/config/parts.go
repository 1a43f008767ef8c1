// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lullhq/lull/internal/shard"
)

// Parts spreads the documents over several stacks, which share their sinks. Each document belongs
// to one part, see [shard.Part]. So only one stack has its row and writes it (docs/scale.md).
type Parts struct {
	// Of is the number of parts, 1 to 100. Default 1: this stack has all documents.
	Of int `json:"of"`
	// This is the part of this stack, 1 to Of. Default 0: it must be set if Of is more than 1.
	This int `json:"this"`
}

// Spread reports whether the stack has only a part of the documents.
func (p Parts) Spread() bool { return p.Of > 1 }

// PartOf returns the part of a document. It is 1 if the stack has all documents.
func (c *Config) PartOf(doc shard.DocID) int {
	return shard.Part(doc, c.Parts.Of)
}

// Ours reports whether a document belongs to this stack's part.
func (c *Config) Ours(doc shard.DocID) bool {
	return !c.Parts.Spread() || !doc.IsDocument() || c.PartOf(doc) == c.Parts.This
}

// NotOurs says of which part a document is that is not ours, for people.
func (c *Config) NotOurs(doc shard.DocID) string {
	return fmt.Sprintf("%s is of part %d of %d, and this is stack %s of part %d", doc.Plain(), c.PartOf(doc), c.Parts.Of,
		c.Stack, c.Parts.This)
}

// InPart returns the settings of the stack of another part. Only its name and part differ.
func (c *Config) InPart(part int) *Config {
	other := *c
	other.Stack, other.Parts.This = strings.TrimSuffix(c.Stack, c.Parts.suffix())+"-"+strconv.Itoa(part), part
	return &other
}

// Whole returns the settings of a stack that has all documents.
func (c *Config) Whole() *Config {
	whole := *c
	whole.Parts = Parts{Of: 1}
	return &whole
}

// suffix is the end of the stack's name.
func (p Parts) suffix() string { return "-" + strconv.Itoa(p.This) }

// partRules check that all senders and all stacks agree about the part of a document.
var partRules = []Rule{
	{
		"parts", "With parts.of above 1, parts.this is from 1 to parts.of.",
		func(c *Config, f *checker) {
			if this := c.Parts.This; c.Parts.Spread() && (this < 1 || this > c.Parts.Of) {
				f.fault("parts.this", this, fmt.Sprintf("is not one of the %d parts", c.Parts.Of),
					fmt.Sprintf("write the part of this stack, a number from 1 to %d", c.Parts.Of))
			} else if !c.Parts.Spread() && this > 1 {
				f.fault("parts.this", this, "is more than the parts.of of "+strconv.Itoa(c.Parts.Of),
					"write the number of all parts into parts.of")
			}
		},
	},
	{
		"parts-stack", "With parts.of above 1, the name of the stack ends in a hyphen and parts.this.",
		func(c *Config, f *checker) {
			if c.Parts.Spread() && !strings.HasSuffix(c.Stack, c.Parts.suffix()) {
				f.fault("stack", c.Stack, "does not end in the part of this stack",
					"write a name such as content"+c.Parts.suffix()+", and the same with another number in the other parts")
			}
		},
	},
	{
		"parts-own", "With parts.of above 1, each part has its own table and queues.",
		checkPartsOwn,
	},
	{
		"parts-lines", "With parts.of above 1, no source reads the lines of objects.",
		func(c *Config, f *checker) {
			for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
				if c.Parts.Spread() && c.Sources[name].Lines() != "" {
					f.fault("sources."+printable(name)+".s3.lines", c.Sources[name].Lines(),
						"would send the lines of all parts to this one", "send them with `lull resync`, and remove lines")
				}
			}
		},
	},
}

func checkPartsOwn(c *Config, f *checker) {
	if !c.Parts.Spread() {
		return
	}
	const why, fix = "would be the same in every part", "remove it, so that each stack creates its own"
	if c.Table.Name != "" {
		f.fault("table.name", c.Table.Name, why, fix)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Sinks)) {
		if queue := c.Sinks[name].LiveQueue; queue != "" {
			f.fault("sinks."+printable(name)+".liveQueue", queue, why, fix)
		}
	}
}
