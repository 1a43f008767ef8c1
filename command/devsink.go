// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/sink"
)

// sinkFlag is one --sink.
type sinkFlag struct {
	name string // the sink of the settings that it replaces; empty for all sinks
	kind sink.Kind
	url  string
	text string // the text of the flag, without a password
}

// defaultKind is the kind of an address that several kinds could have.
const defaultKind = "opensearch"

var named = regexp.MustCompile(`^([^=:/]*)=(.*)$`)

// parseSink reads [NAME=][KIND:]URL, or a kind that needs no URL.
func parseSink(text string) (f sinkFlag, err error) {
	f.text = operate.Shown(text)
	rest := text
	if m := named.FindStringSubmatch(text); m != nil {
		if f.name, rest = m[1], m[2]; f.name == "" {
			return f, fmt.Errorf("--sink %s: name the sink before the =", f.text)
		}
	}
	bad := func(format string, args ...any) (sinkFlag, error) {
		return f, fmt.Errorf("--sink %s: %s", f.text, fmt.Sprintf(format, args...))
	}
	first, address, _ := strings.Cut(rest, ":")
	kind, known := sink.Lookup(first)
	of, fits := kindOf(first)
	switch {
	case known && slices.Contains(kind.Schemes, first) && strings.HasPrefix(address, "//"):
		f.kind, f.url = kind, rest // the kind and the scheme have the same name: postgres://host
	case known:
		f.kind, f.url = kind, address
	case fits && strings.HasPrefix(address, "//"):
		f.kind, f.url = of, rest
	case rest == first:
		return bad(
			"is not an address: write a URL such as http://127.0.0.1:9200, or a kind: %s",
			strings.Join(sink.Kinds(), ", "),
		)
	default:
		return bad(
			"this program has no kind %q, only %s; addresses begin with %s",
			first,
			strings.Join(sink.Kinds(), ", "),
			strings.Join(schemes(), ", "),
		)
	}
	switch u, err := url.Parse(f.url); {
	case !f.kind.Deployable() && f.url != "":
		return bad("%s is in this process and has no address: name its folder with --data", f.kind.Name)
	case !f.kind.Deployable():
	case err != nil || u.Host == "" || !slices.Contains(f.kind.Schemes, u.Scheme):
		return bad("%s needs an address that begins with %s", f.kind.Name, strings.Join(f.kind.Schemes, " or "))
	}
	return f, nil
}

// kindOf returns a kind whose addresses may have a scheme. The default kind goes before the others.
func kindOf(scheme string) (sink.Kind, bool) {
	for _, name := range append([]string{defaultKind}, sink.Kinds()...) {
		if k, _ := sink.Lookup(name); slices.Contains(k.Schemes, scheme) {
			return k, true
		}
	}
	return sink.Kind{}, false
}

// schemes lists the schemes with which an address may begin.
func schemes() (all []string) {
	for _, name := range sink.Kinds() {
		k, _ := sink.Lookup(name)
		for _, s := range k.Schemes {
			all = append(all, s+"://")
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// chooseSinks applies --sink. Without a name, it replaces all sinks of the settings. With a name,
// it replaces the kind and the address of that sink.
func (f *devFlags) chooseSinks(cfg *config.Config) error {
	if one, all := f.chosen[""]; all {
		cfg.Sinks = map[string]config.Sink{"search": one.settings(config.Sink{})}
		cfg.DefaultSink = "search"
		for name, col := range cfg.Collections {
			col.Sink, col.Sinks = "", nil
			cfg.Collections[name] = col
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(f.chosen)) {
		was, ok := cfg.Sinks[name]
		if !ok {
			return fmt.Errorf("--sink %s: the settings have no sink %q, only %s", f.chosen[name].text, name,
				strings.Join(slices.Sorted(maps.Keys(cfg.Sinks)), ", "))
		}
		cfg.Sinks[name] = f.chosen[name].settings(was)
	}
	return nil
}

func (s sinkFlag) settings(of config.Sink) config.Sink {
	c := inPlaceOf(of, s.kind.Name, s.url)
	if s.kind.NeedsIndex && c.Index == "" {
		c.Index = "lull-{collection}"
	}
	return c
}

// inPlaceOf returns the settings of a sink with another kind and address. It removes the
// credentials, which belong to the old address. If the kind changes, it also removes the options.
// It limits other settings to what the new kind supports.
func inPlaceOf(s config.Sink, kind, url string) config.Sink {
	if s.Kind != kind {
		s.Options = nil
	}
	s.Kind, s.URL, s.Auth = kind, url, config.Auth{}
	can := s.Capabilities()
	if s.Versions != nil {
		s.Versions = &can.Versions
	}
	if can.MaxDocuments > 0 {
		s.BulkDocuments = min(s.BulkDocuments, can.MaxDocuments)
	}
	return s
}

// parseSinks reads the flags --sink.
func (f *devFlags) parseSinks() error {
	f.chosen = map[string]sinkFlag{}
	for _, text := range f.sinks {
		s, err := parseSink(text)
		if err != nil {
			return err
		}
		if _, twice := f.chosen[s.name]; twice && s.name != "" {
			return fmt.Errorf("--sink %s: another --sink names sink %s already: leave one out", s.text, s.name)
		}
		f.chosen[s.name] = s
	}
	if _, all := f.chosen[""]; all && len(f.sinks) > 1 {
		return fmt.Errorf("--sink: with several, name the sink that each replaces: --sink NAME=%s", f.sinks[0])
	}
	return nil
}
