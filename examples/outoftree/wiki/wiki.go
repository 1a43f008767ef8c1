// SPDX-License-Identifier: Apache-2.0

// Package wiki is a kind of source for lull: the change messages of an invented wiki. Importing the
// package registers the kind.
//
//	{"action":"saved","page":{"space":"handbook","title":"Leave","revision":17},"content":{"text":"..."}}
//
// A page is a document of the source's collection. The id of the document consists of the space and
// the title, and the version is the revision. In lull.yaml:
//
//	sources:
//	  wiki:
//	    kind: wiki
//	    spaces: [handbook]
package wiki

import (
	"regexp"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/source"
)

// Options are the settings that only this kind has.
type Options struct {
	// Spaces are the spaces that are indexed. Nil means all spaces.
	Spaces []string `json:"spaces"`
}

var spacePattern = regexp.MustCompile(`^[a-z]+$`)

func init() {
	source.Register(source.Kind{
		Kind: setting.Kind{
			Name: "wiki", Doc: "Changes of an invented wiki: every page is a document.", Options: Options{},
			Settings: []setting.Setting{
				setting.List("spaces", spacePattern, "a space's name in lower-case letters",
					"The spaces that are indexed; pages of other spaces are skipped.").Otherwise("all"),
			},
		},
		Class: source.ClassInt, Versioned: true,
		New: func(r *source.Rules) (source.Format, error) {
			o, err := source.OptionsOf[Options](r.Settings)
			return &format{r, o}, err
		},
	})
}

// format decodes the messages of one source. It has the method Document of the embedded Rules,
// which makes the projection.
type format struct {
	*source.Rules
	Options
}

// Decode implements source.Format.
func (f *format) Decode(b event.Body) (d source.Draft, bad *event.Invalid) {
	if bad := source.Object(b); bad != nil {
		return d, bad
	}
	root := gjson.Parse(b.Text)
	page := event.Child(root, "page")
	space, bad := source.TextIdentity("space", event.Child(page, "space"))
	if bad != nil {
		return d, bad
	}
	if !spacePattern.MatchString(space) { // with a slash in the space, two pages could have the same id
		return d, source.Invalid("space", "space %s is not in lower-case letters", event.Quote(space))
	}
	title, bad := source.TextIdentity("title", event.Child(page, "title"))
	if bad != nil {
		return d, bad
	}
	if f.Spaces != nil && !slices.Contains(f.Spaces, space) {
		d.Skip = "another space"
		return d, nil
	}
	if d.Doc, bad = f.DocID("", "title", space+"/"+title); bad != nil {
		return d, bad
	}
	d.Version = source.Version{Field: "revision", Value: event.Child(page, "revision")}
	switch action := event.Child(root, "action"); action.Str {
	case "saved":
		d.Op = event.Put
		content := event.Child(root, "content")
		if !content.IsObject() {
			return d, source.Invalid("content", "content is %s: send an object", source.TypeName(content))
		}
		d.Data = content.Raw
	case "removed":
		d.Op = event.Delete
	default:
		return d, source.Invalid("action", "action is %s: send saved or removed", event.Quote(action.Str))
	}
	return d, nil
}
