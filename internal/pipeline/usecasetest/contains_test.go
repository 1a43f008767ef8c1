// SPDX-License-Identifier: Apache-2.0

package usecasetest_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"testing"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"
)

func TestContainsUnpacks(t *testing.T) {
	t.Parallel()
	const text = "5ecret-content"
	gz := func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(s))
		_ = w.Close()
		return b.String()
	}
	b64, url := base64.StdEncoding.EncodeToString, base64.RawURLEncoding.EncodeToString
	body := `{"title":"~~~ ` + text + ` ???"}`
	for name, data := range map[string]string{
		"plain": body, "base64": `{"data":"` + b64([]byte(body)) + `"}`, "base64 for URLs": url([]byte(body)),
		"behind one letter": "x" + b64([]byte(body)), "behind two": "xy" + b64([]byte(body)),
		"behind three": "xyz" + b64([]byte(body)), "gzip": gz(body), "gzip behind a line": "{}\n" + gz(body),
		"gzip in base64": `"` + b64([]byte(gz(body))) + `"`, "base64 in gzip": gz(b64([]byte(body))),
		"gzip cut off": gz(body)[:len(gz(body))-8],
	} {
		if !usecasetest.Contains([]byte(data), text) {
			t.Errorf("%s: the text was not found", name)
		}
		if usecasetest.Contains([]byte(data), "another-content") {
			t.Errorf("%s: another text was found", name)
		}
	}
}
