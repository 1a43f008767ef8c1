package feed

import "github.com/lullhq/lull/internal/deadletter"

// maxPlaces bounds how many messages Places remembers.
const maxPlaces = 200_000

// Places remembers where in an input messages stood, so that a dead letter can say so. The zero
// value remembers nothing yet. It is not safe for concurrent use.
type Places struct{ byHash map[string]string }

// Note remembers the first place of a message. Equal messages are one.
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

// Of is the place of the message of a dead letter, empty where it is not known.
func (p *Places) Of(f deadletter.Facts) string { return p.byHash[f.Hash] }
