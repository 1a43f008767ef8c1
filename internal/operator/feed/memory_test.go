// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A request is read as a whole, and so is each line of a file. The memory that reading allocates is
// bounded by their size.
func TestReadingInputIsBoundedInMemory(t *testing.T) { // not parallel: it measures memory
	const bytesEach, times = 8 << 20, 8
	var attributes strings.Builder
	for i := 0; attributes.Len() < bytesEach; i++ {
		fmt.Fprintf(&attributes, `"%d":"",`, i)
	}
	for name, text := range map[string]string{
		"attributes": `{"attributes":{` + strings.TrimSuffix(attributes.String(), ",") + `},"body":"x"}`,
		"attributes in full": `{"attributes":{` +
			strings.TrimSuffix(strings.Repeat(`"a":{"type":"String"},`, bytesEach/22), ",") + `},"body":"x"}`,
		"brackets": strings.Repeat("[", bytesEach), "a body of brackets": `{"body":` + strings.Repeat("[", bytesEach) + `}`,
		"a text of escapes": `{"body":"` + strings.Repeat(`\u0000`, bytesEach/6) + `"}`, "keys": strings.Repeat(`{"a":`, bytesEach/5),
		"lines": strings.Repeat("1\n", bytesEach/2), "blank lines": strings.Repeat("\n", bytesEach),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		messages := 0
		for _, err := range All(Request([]byte(text))) {
			if err == nil {
				messages++
			}
			if messages == 1000 {
				break // the memory of each message is free before the next message is read
			}
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > times*bytesEach {
			t.Errorf("%s: allocates %d MB for %d MB", name, got>>20, bytesEach>>20)
		}
	}
}
