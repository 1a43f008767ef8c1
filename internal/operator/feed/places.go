// SPDX-License-Identifier: Apache-2.0

package feed

import "github.com/lullhq/lull/internal/seam/deadletter"

// maxPlaces bounds how many messages Places remembers.
const maxPlaces = 200_000

// Places remembers where in an input each message was, so that a dead letter can name the place.
// The zero value is empty and ready to use. It is not safe for concurrent use.
type Places struct{ byHash map[string]string }

// Note remembers the first place of a message. Equal messages count as one message.
func (p *Places) Note(t Timed) {
	if t.Where == "" || len(p.byHash) >= maxPlaces {
		return
	}
	if p.byHash == nil {
		p.byHash = map[string]string{}
	}
	hash := deadletter.Hash(t.Body, t.Attributes)
	if _, known := p.byHash[hash]; !known {
		p.byHash[hash] = t.Where
	}
}

// Of returns the place of a dead letter's message. It is empty if unknown.
func (p *Places) Of(f deadletter.Facts) string { return p.byHash[f.Hash] }
