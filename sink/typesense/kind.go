// SPDX-License-Identifier: Apache-2.0

package typesense

import (
	"context"
	"errors"
	"net/http"
	"os"
	"regexp"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

// Name is the name of this kind of sink in the settings.
const Name = "typesense"

// Settings are the options that only this kind has.
type Settings struct {
	Typesense Collection `json:"typesense"`
}

// Collection describes the collections that lull creates in Typesense.
type Collection struct {
	// Fields are the members of documents that have a type and are searched, such as
	// "title:string". Empty means that one field contains all words of a document, and searches use
	// that field.
	Fields []string `json:"fields"`
}

// keyVariable is the environment variable with the API key. The variable is used if auth names no
// key.
const keyVariable = "TYPESENSE_API_KEY"

var fieldPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}:(string|int32|int64|float|bool|geopoint)(\[\])?(:facet)?$`)

func init() {
	sink.Register(sink.Kind{
		Kind: setting.Kind{
			Name: Name, Doc: "Typesense.",
			Options: Settings{},
			Settings: []setting.Setting{
				setting.List("typesense.fields", fieldPattern,
					"NAME:TYPE or NAME:TYPE:facet, such as title:string, details.size:int32 or tags:string[]:facet",
					"The typed fields of documents that searches use, in collections that lull creates.").
					Otherwise("none: all words are searched in one field"),
			},
		},
		Schemes:    []string{"http", "https"},
		Auths:      []sink.AuthKind{sink.AuthKey},
		NeedsIndex: true,
		Open:       open,
	})
}

func open(_ context.Context, s sink.Settings, env sink.Environment) (sink.Sink, error) {
	own, _ := s.Options.(Settings)
	key := env.Key
	if text := os.Getenv(keyVariable); key == nil && text != "" {
		key = func(context.Context) (string, error) { return text, nil }
	}
	return New(Options{
		URL: s.URL, Index: s.Index, Collections: env.Collections, BulkDocuments: s.BulkDocuments,
		BulkBytes: int64(s.BulkBytes), Fields: own.Typesense.Fields, Key: key,
	})
}

// authenticate returns a function that adds the current API key to a request.
func authenticate(key func(context.Context) (string, error)) func(*http.Request) error {
	return func(r *http.Request) error {
		if key == nil {
			return errNoKey
		}
		text, err := key(r.Context())
		if err != nil {
			return err
		}
		r.Header.Set("X-Typesense-Api-Key", text)
		return nil
	}
}

var errNoKey = errors.New("there is no API key: set auth.kind to key, or set the environment variable " + keyVariable)
