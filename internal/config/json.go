package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"time"

	"github.com/lullhq/lull/internal/config/tree"
	"github.com/lullhq/lull/setting"
)

// MarshalJSON writes every setting, with durations and sizes as lull.yaml writes them. Overrides
// that are not set, nil lists and the options of other kinds are left out.
func (c Config) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	if err := encode(&b, reflect.ValueOf(c)); err != nil {
		return nil, fmt.Errorf("encode settings: %w", err)
	}
	return b.Bytes(), nil
}

// UnmarshalJSON reads settings as ParseJSON does: what the text does not say has its default,
// whatever c was before.
func (c *Config) UnmarshalJSON(text []byte) error {
	parsed, err := ParseJSON(text)
	if err == nil {
		*c = parsed
	}
	return err
}

// ParseJSON reads settings in JSON, strictly; see Decode. Call Validate afterwards.
func ParseJSON(text []byte) (Config, error) { return parseJSON(text, decoder{}) }

func parseJSON(text []byte, d decoder) (Config, error) {
	root, err := tree.ParseJSON(text)
	if err != nil {
		return Config{}, fmt.Errorf("parse settings: %w", err)
	}
	return decode(root, d)
}

// LoadDeployed reads the settings beside a function's binary, which were validated when the stack was
// made, and validates them again. A function links only the kinds that it needs: settings of other
// kinds, and which kinds there are, are taken as they stand.
func LoadDeployed(path string) (Config, error) {
	c, err := load(path, decoder{deployed: true})
	if err == nil {
		err = c.validateDeployed(true)
	}
	return c, err
}

// ReadJSON reads settings in JSON from r, to its end.
func ReadJSON(r io.Reader) (Config, error) { return readJSON(r, decoder{}) }

func readJSON(r io.Reader, d decoder) (Config, error) {
	text, err := tree.Read(r)
	if err != nil {
		return Config{}, fmt.Errorf("read settings: %w", err)
	}
	return parseJSON(text, d)
}

// LoadJSON reads settings from a file in JSON, such as config.json beside a function's binary.
func LoadJSON(path string) (Config, error) { return load(path, decoder{}) }

func load(path string, d decoder) (Config, error) {
	file, err := os.Open(path)
	if err != nil {
		return Config{}, fmt.Errorf("open settings: %w", err)
	}
	defer file.Close()
	c, err := readJSON(file, d)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

func encode(b *bytes.Buffer, v reflect.Value) error {
	switch {
	case v.Type() == durationType:
		return encodeText(b, setting.FormatDuration(time.Duration(v.Int())))
	case v.Type() == sizeType:
		return encodeText(b, setting.Size(v.Int()).String())
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encode(b, v.Elem())
	case reflect.Struct:
		return encodeStruct(b, v)
	case reflect.Map:
		return encodeMap(b, v)
	case reflect.Slice:
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := encode(b, v.Index(i)); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case reflect.String:
		return encodeText(b, v.String())
	default:
		b.WriteString(written(v))
		return nil
	}
}

func encodeText(b *bytes.Buffer, s string) error {
	text, err := json.Marshal(s)
	b.Write(text)
	return err
}

func encodeStruct(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('{')
	if err := encodeFields(b, v); err != nil {
		return err
	}
	b.WriteByte('}')
	return nil
}

// encodeFields writes the members of an object that has begun.
func encodeFields(b *bytes.Buffer, v reflect.Value) error {
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Tag.Get("json"), v.Field(i)
		var err error
		switch {
		case leftOut(v.Type(), field):
		case name == inline:
			err = encodeFields(b, field.Elem())
		default:
			if b.Bytes()[b.Len()-1] != '{' {
				b.WriteByte(',')
			}
			fmt.Fprintf(b, "%q:", name)
			err = encode(b, field)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leftOut reports whether a field of the struct t says nothing: an override that is not set, a nil
// list or map, a source's options of another kind. A group whose settings are all zero says
// something: it replaces the defaults.
func leftOut(t reflect.Type, v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return v.IsNil()
	case reflect.Struct:
		return t == sourceType && v.IsZero()
	default:
		return false
	}
}

func encodeMap(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('{')
	for i, name := range sortedNames(v) {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encodeText(b, name); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := encode(b, v.MapIndex(reflect.ValueOf(name))); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}
