// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
)

// Kind describes one kind of sink or source.
type Kind struct {
	// Name is the value of sinks.<name>.kind or sources.<name>.kind.
	Name string
	// Doc says in one sentence what the kind is.
	Doc string
	// Options is a struct with the defaults of the options that only this kind has. It is nil if
	// the kind has no options of its own. In the settings file, the options are next to the common
	// settings, under the name in the json tag of each field. A group of options is a struct in a
	// field. A field is a bool, int, uint32, string, []string, time.Duration, [Size] or a struct of
	// fields with these types.
	Options any
	// Settings has one description for each option.
	Settings []Setting
}

// Problem is something that is wrong with the settings of one sink or source.
type Problem struct {
	// Setting is the name below the sink or source, such as auth.service.
	Setting string
	// Value is the setting's value, or nil. It reaches logs, so it must never be a password.
	Value any
	// Problem says what is wrong, and Fix says what to change.
	Problem, Fix string
}

// Kinds is a registry of kinds, by name. The zero value is empty. It is safe for concurrent use.
type Kinds[K any] struct {
	mu     sync.RWMutex
	byName map[string]K
}

// Add registers a kind. It panics if the description contradicts itself or another kind has the
// name, because both are errors in the program.
func (k *Kinds[K]) Add(d Kind, kind K) {
	if err := d.check(); err != nil {
		panic(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, taken := k.byName[d.Name]; taken {
		panic(fmt.Sprintf("kind %s is registered twice", d.Name))
	}
	if k.byName == nil {
		k.byName = make(map[string]K)
	}
	k.byName[d.Name] = kind
}

// Lookup returns the kind with this name. It returns false if no kind has the name.
func (k *Kinds[K]) Lookup(name string) (K, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	kind, ok := k.byName[name]
	return kind, ok
}

// Names returns the names of all kinds, sorted.
func (k *Kinds[K]) Names() []string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return slices.Sorted(maps.Keys(k.byName))
}

// check compares the struct of options with the descriptions of the options.
func (d Kind) check() error {
	if d.Name == "" || d.Doc == "" {
		return fmt.Errorf("kind %q needs a name and a doc", d.Name)
	}
	var fields, described []string
	if d.Options != nil {
		fields = leaves(reflect.TypeOf(d.Options), "")
	}
	for _, s := range d.Settings {
		described = append(described, s.Name)
	}
	slices.Sort(fields)
	slices.Sort(described)
	if !slices.Equal(fields, described) {
		return fmt.Errorf("kind %s has the options %q and describes %q", d.Name, fields, described)
	}
	return nil
}

// leaves lists the dotted names of the options in a struct.
func leaves(t reflect.Type, prefix string) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		name := prefix + f.Tag.Get("json")
		if f.Type.Kind() == reflect.Struct {
			names = append(names, leaves(f.Type, name+".")...)
			continue
		}
		names = append(names, name)
	}
	return names
}
