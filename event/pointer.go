package event

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/deadletter"
)

// pointer reads what the extended client libraries of SQS and SNS send in place of a large body: a
// list of a class name and an object. The names differ between versions of the libraries; their
// ends do not.
func pointer(text string) (Pointer, bool) {
	var class string
	var p Pointer
	n := 0
	gjson.Parse(text).ForEach(func(_, v gjson.Result) bool {
		switch n++; n {
		case 1:
			class = v.Str
		case 2:
			p = Pointer{Bucket: Child(v, "s3BucketName").Str, Key: Child(v, "s3Key").Str}
		}
		return n <= 2
	})
	known := strings.HasSuffix(class, "PayloadS3Pointer") || strings.HasSuffix(class, "MessageS3Pointer")
	return p, n == 2 && known && p.Bucket != "" && p.Key != ""
}

// follow loads the body that a pointer names. It counts as an envelope, so that pointers to
// pointers end.
func (u Unwrapper) follow(dst []Body, p Pointer, meta Meta, left int) []Body {
	refuse := func(f *Invalid) []Body { return append(dst, Body{Invalid: f, Meta: meta}) }
	if left == 0 {
		return refuse(u.wrappedTooDeep())
	}
	if u.Load == nil {
		return refuse(&Invalid{
			Reason: deadletter.Payload, Field: "s3Key",
			Problem: "the body is a pointer to an object in S3, which cannot be loaded here",
		})
	}
	text, f := u.Load(p)
	if f != nil {
		return refuse(f)
	}
	return u.open(dst, text, meta, left-1)
}
