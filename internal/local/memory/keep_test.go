// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

// folder is a Keeper that stores values as JSON, as a data folder does.
type folder map[string][]byte

func (f folder) Each(_ string, each func(key string, value []byte) error) error {
	for k, v := range f {
		if err := each(k, v); err != nil {
			return err
		}
	}
	return nil
}

func (f folder) Put(_, key string, value any) { f[key], _ = json.Marshal(value) }
func (f folder) Delete(_, key string)         { delete(f, key) }
func (f folder) Flush()                       {}

// Order keys and digests are bytes. As JSON strings, some bytes would be replaced by question
// marks.
func TestARowIsKeptToTheLastByte(t *testing.T) {
	t.Parallel()
	row := shard.Row{Doc: "content#a"}
	for _, f := range reflect.ValueOf(&row).Elem().Fields() {
		switch f.Type() {
		case reflect.TypeFor[shard.OrderKey](), reflect.TypeFor[shard.Content]():
			f.SetString("\xff\x00\x80 bytes")
		case reflect.TypeFor[shard.KeySet]():
			f.SetString(string(shard.KeySetOf("\xff\x00\x80 bytes")))
		}
	}
	kept := folder{}
	before, after := memory.NewShards(), memory.NewShards()
	if err := before.Keep(kept); err != nil {
		t.Fatal(err)
	}
	if _, err := before.Write(t.Context(), shardtest.Put(row)); err != nil {
		t.Fatal(err)
	}
	if err := after.Keep(kept); err != nil {
		t.Fatal(err)
	}
	got, err := after.Read(t.Context(), []shard.DocID{row.Doc}, shard.Consistent)
	if err != nil || got[0] != row {
		t.Errorf("got  %+v (%v)\nwant %+v", got, err, row)
	}
}
