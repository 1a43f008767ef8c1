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
func ParseJSON(text []byte) (Config, error) {
	root, err := tree.ParseJSON(text)
	if err != nil {
		return Config{}, fmt.Errorf("parse settings: %w", err)
	}
	return Decode(root)
}

// ReadJSON reads settings in JSON from r, to its end.
func ReadJSON(r io.Reader) (Config, error) {
	text, err := tree.Read(r)
	if err != nil {
		return Config{}, fmt.Errorf("read settings: %w", err)
	}
	return ParseJSON(text)
}

// LoadJSON reads settings from a file in JSON, such as config.json beside a function's binary.
func LoadJSON(path string) (Config, error) {
	file, err := os.Open(path)
	if err != nil {
		return Config{}, fmt.Errorf("open settings: %w", err)
	}
	defer file.Close()
	c, err := ReadJSON(file)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

func encode(b *bytes.Buffer, v reflect.Value) error {
	switch {
	case v.Type() == durationType:
		return encodeText(b, FormatDuration(time.Duration(v.Int())))
	case v.Type() == sizeType:
		return encodeText(b, Size(v.Int()).String())
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
	separator := byte('{')
	for i := range v.NumField() {
		if leftOut(v.Type(), v.Field(i)) {
			continue
		}
		b.WriteByte(separator)
		separator = ','
		fmt.Fprintf(b, "%q:", v.Type().Field(i).Tag.Get("json"))
		if err := encode(b, v.Field(i)); err != nil {
			return err
		}
	}
	if separator == '{' {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return nil
}

// leftOut reports whether a field of the struct t says nothing: an override that is not set, a nil
// list or map, a source's options of another kind. A group whose settings are all zero says
// something: it replaces the defaults.
func leftOut(t reflect.Type, v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return v.IsNil()
	case reflect.Struct:
		return t == sourceType && v.IsZero()
	default:
		return false
	}
}

func encodeMap(b *bytes.Buffer, v reflect.Value) error {
	separator := byte('{')
	for _, name := range sortedNames(v) {
		b.WriteByte(separator)
		separator = ','
		if err := encodeText(b, name); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := encode(b, v.MapIndex(reflect.ValueOf(name))); err != nil {
			return err
		}
	}
	if separator == '{' {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return nil
}
