// SPDX-License-Identifier: Apache-2.0

// Package memorysink is the sink kind "memory": a search engine in the memory of one process. `lull
// dev` writes to this sink if there are no settings. Tests and the simulator also use this sink.
//
// The sink implements every part of package sink: versions, marks, generations and rebuilding. All
// documents are lost when the process ends. No request fails unless a test scripts answers or sets
// a rule. A [Sink] is safe for concurrent use. Time comes from a clock.Clock.
package memorysink
