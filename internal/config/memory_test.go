// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/tree"
)

// Settings also arrive over HTTP, from a page. So a hostile text must not use much memory.
func TestFaultsOfSettingsAreBoundedInMemory(t *testing.T) { // not parallel: it measures memory
	const most = 320 << 20
	var unknown, sinks strings.Builder
	for i := 0; unknown.Len() < tree.MaxBytes-64; i++ {
		fmt.Fprintf(&unknown, `"a%d":1,`, i)
	}
	for i := 0; sinks.Len() < tree.MaxBytes-64; i++ {
		fmt.Fprintf(&sinks, `"a%d":{"kind":"x"},`, i)
	}
	for name, text := range map[string]string{
		"unknown keys": "{" + unknown.String() + `"b":1}`, "a key again and again": "{" + strings.Repeat(`"stack":"a",`, 20_000) + `"b":1}`,
		"nothing": "{" + strings.Repeat(`"":{},`, 40_000) + `"b":1}`, "lists": strings.Repeat("[", tree.MaxBytes),
		"numbers": "[" + strings.Repeat("1,", 120_000) + "1]", "sinks": `{"sinks":{` + sinks.String() + `"b":{}}}`,
		"collections": `{"collections":{` + strings.ReplaceAll(sinks.String(), "kind", "sink") + `"b":{}}}`,

		"a long key": `{"` + strings.Repeat("a", tree.MaxBytes-10) + `":1}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := config.ParseJSON([]byte(text))
		if err == nil {
			err = c.Validate()
		}
		said := len(err.Error())
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > most {
			t.Errorf("%s: allocates %d MB, says %d KB, want at most %d MB", name, got>>20, said>>10, most>>20)
		} else {
			t.Logf("%s: allocates %d MB, says %d KB", name, got>>20, said>>10)
		}
	}
}
