// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/lullhq/lull/internal/seam/queue"
)

// The encodings of a dead letter's body.
const (
	encodingGzip  = "gzip+base64" // packed in the body, which can hold only text
	encodingBytes = "gzip"        // packed in AttrBody
)

func pack(body string) ([]byte, error) {
	var zipped bytes.Buffer
	zip, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(zip, body)
	if err = errors.Join(err, zip.Close()); err != nil {
		return nil, err
	}
	return zipped.Bytes(), nil
}

// unpack returns the body that pack packed. It refuses a body that is larger than any message,
// because pack never packs one.
func unpack(packed io.Reader) (string, error) {
	zip, err := gzip.NewReader(packed)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(io.LimitReader(zip, queue.MaxBytes+1))
	if len(body) > queue.MaxBytes {
		err = fmt.Errorf("more than %d bytes", queue.MaxBytes)
	}
	return string(body), err
}

// ascii writes JSON without characters that SQS refuses. Every character that is not ASCII becomes
// an escape.
func ascii(doc []byte) string {
	var b strings.Builder
	b.Grow(len(doc))
	for _, r := range string(doc) {
		if r < 0x7f {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
