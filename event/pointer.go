// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/seam/deadletter"
)

// parsePointer parses a pointer, which the extended client libraries of SQS and SNS send instead of
// a large body. A pointer is a list of a class name and an object. Different versions of the
// libraries use different class names, but the names end in the same way.
func parsePointer(text string) (Pointer, bool) {
	list := gjson.Parse(text)
	class, place := Child(list, "0").Str, Child(list, "1")
	p := Pointer{Bucket: Child(place, "s3BucketName").Str, Key: Child(place, "s3Key").Str}
	known := strings.HasSuffix(class, "PayloadS3Pointer") || strings.HasSuffix(class, "MessageS3Pointer")
	return p, known && !Child(list, "2").Exists() && p.Bucket != "" && p.Key != ""
}

// follow loads the body that a pointer names. A pointer counts as an envelope, so that a chain of
// pointers ends.
func (u Unwrapper) follow(dst []Body, p Pointer, meta Meta, left int) []Body {
	refuse := func(f *Invalid) []Body { return append(dst, Body{Invalid: f, Meta: meta}) }
	if left == 0 {
		return refuse(u.wrappedTooDeep())
	}
	if u.Load == nil {
		return refuse(&Invalid{
			Reason: deadletter.Payload, Field: "s3Key",
			Problem: "the body is a pointer to an object in S3, which this program cannot load",
		})
	}
	text, f := u.Load(p)
	if f != nil {
		return refuse(f)
	}
	return u.open(dst, text, meta, left-1)
}
