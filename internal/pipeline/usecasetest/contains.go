// SPDX-License-Identifier: Apache-2.0

package usecasetest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"regexp"
	"strings"
)

// These are bounds of what Contains unpacks.
const (
	containsDepth = 5        // how many encodings may surround the text
	containsMost  = 64 << 20 // bytes that are read of one gzip stream
)

var (
	packed = regexp.MustCompile(`[A-Za-z0-9+/_-]{16,}`)
	gzips  = []byte{0x1f, 0x8b, 8}
)

// Contains reports whether a text is in data: as plain text, or inside base64 and gzip, in any
// order.
func Contains(data []byte, text string) bool { return contains(data, []byte(text), containsDepth) }

func contains(data, text []byte, depth int) bool {
	if bytes.Contains(data, text) {
		return true
	}
	if depth == 0 {
		return false
	}
	for rest := data; ; rest = rest[len(gzips):] {
		at := bytes.Index(rest, gzips)
		if at < 0 {
			break
		}
		rest = rest[at:]
		if r, err := gzip.NewReader(bytes.NewReader(rest)); err == nil {
			// if the data is broken, use the part before the error
			plain, _ := io.ReadAll(io.LimitReader(r, containsMost))
			if contains(plain, text, depth-1) {
				return true
			}
		}
	}
	standard := strings.NewReplacer("-", "+", "_", "/")
	for _, run := range packed.FindAll(data, -1) {
		for from := range 4 { // other text may directly precede the base64
			part := standard.Replace(string(run[from:]))
			if len(part)%4 == 1 {
				part = part[:len(part)-1]
			}
			plain, err := base64.RawStdEncoding.DecodeString(part)
			if err == nil && contains(plain, text, depth-1) {
				return true
			}
		}
	}
	return false
}
