// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source"
)

var example = source.Example{
	Change: source.Change{
		ID: "guides/bus-pass.json", Bucket: "example-documents", Version: "0055AED6DCD90281E5", Op: event.Put,
		Time: time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC),
	},
	Write: write,
}

// write makes the notification of a change. It does not contain the content, because lull loads the
// object when it writes the document.
func write(s source.Settings, c source.Change) (string, error) {
	o, err := source.OptionsOf[Options](s)
	if err != nil {
		return "", err
	}
	_, err = c.Content()
	name := "ObjectCreated:Put"
	if c.Op == event.Delete {
		name = "ObjectRemoved:Delete"
	}
	at := ""
	if !c.Time.IsZero() {
		at = `"eventTime":"` + c.Time.UTC().Format("2006-01-02T15:04:05.000Z") + `",`
	}
	bucket := cmp.Or(c.Bucket, "example-documents")
	// S3 escapes keys in this way
	key := strings.ReplaceAll(url.QueryEscape(o.S3.StripPrefix+c.ID+o.S3.StripSuffix), "%2F", "/")
	return `{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"eu-west-1",` + at + `"eventName":"` +
		name + `","s3":{"s3SchemaVersion":"1.0","bucket":{"name":` + source.Quoted(bucket) + `,"arn":` +
		source.Quoted("arn:aws:s3:::"+bucket) + `},"object":{"key":` + source.Quoted(key) + `,"sequencer":` +
		source.Quoted(c.Version) + `}}}]}`, cmp.Or(err, c.Here(s))
}
