// SPDX-License-Identifier: Apache-2.0

package searchable

import "time"

// Path is the path of the question, in lull dev and at the URL of a deployed stack.
const Path = "/searchable"

// MaxWait is the longest time for which one request may wait.
const MaxWait = 20 * time.Second

// Question asks about one document.
type Question struct {
	// Key is COLLECTION#ID. COLLECTION@SINK#ID asks about one of several sinks.
	Key string `json:"key"`
	// Version is the upstream's version. A newer version counts, too. If Version is empty, the
	// question is about the committed version.
	Version string `json:"version,omitempty"`
	// Wait is how long the stack waits for a yes, at most [MaxWait]. 0 asks once.
	Wait time.Duration `json:"wait_ns,omitempty"`
}

// State is an answer: yes, no or unknown.
type State string

// The answers.
const (
	Yes     State = "yes"
	No      State = "no"
	Unknown State = "unknown" // lull cannot know it for this sink
)

// How says how lull knows that a search finds a version.
type How string

// The ways in which lull knows it.
const (
	// Asked means that a search of the engine found it.
	Asked How = "asked"
	// AtOnce means that the version is committed, and that an engine of this kind shows a write to
	// searches at once.
	AtOnce How = "at once"
	// Refreshed means that the version is committed, and that the refresh interval in the settings
	// of the sink (sinks.<name>.refresh) is over.
	Refreshed How = "refreshed"
)

// Place says where the version is.
type Place string

// The places.
const (
	Committed Place = "committed" // the version, or a newer one, is in the engine
	Waiting   Place = "waiting"   // it waits for the end of its burst
	Claimed   Place = "claimed"   // it is being written
	Retrying  Place = "retrying"  // a write failed, or got no answer; it is tried again
	Paused    Place = "paused"    // an operator paused the sink
	Unhealthy Place = "unhealthy" // the sink does not work, and lull waits for it
	Dead      Place = "dead"      // it is a dead letter: an operator must act
	Forgotten Place = "forgotten" // an operator removed the document: lull accepts no version of it
	Unseen    Place = "unseen"    // lull has not read an event with this version, or has refused it
)

// Answer is the answer to a question.
type Answer struct {
	Key     string `json:"key"`
	Version string `json:"version,omitempty"` // the version that was asked for
	// Searchable is yes if all sinks say yes, no if one of them says no, and otherwise unknown.
	Searchable State  `json:"searchable"`
	Sinks      []Sink `json:"sinks"`
}

// Sink is the answer for one sink.
type Sink struct {
	Sink       string `json:"sink"`
	Searchable State  `json:"searchable"`
	How        How    `json:"how,omitempty"` // set if Searchable is yes
	Place      Place  `json:"place"`
	// Until is the end of the lease, of the outage, of the refresh interval, or of the longest wait
	// of a burst. It is zero if the end is not known.
	Until     time.Time `json:"until,omitzero"`
	Committed string    `json:"committed"`               // order key in print; empty if no version is committed
	Version   string    `json:"version"`                 // the committed version
	Operation string    `json:"operation,omitempty"`     // put or delete
	Since     time.Time `json:"committed_at,omitzero"`   // when it was committed, by the clock of the stack
	Pending   string    `json:"pending,omitempty"`       // a newer version that is not committed
	By        string    `json:"superseded_by,omitempty"` // the newer version that takes the place of the asked one
	Why       string    `json:"why,omitempty"`           // why not, or why lull cannot know it
}
