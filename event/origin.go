package event

import (
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"
)

// Origin is what the envelopes around a message say about where it comes from. Nobody vouches for
// it but whoever may send to the queue.
type Origin struct {
	Topic      string // the ARN of the SNS topic, where raw delivery is off
	Bus        string // the source of an EventBridge event, such as aws.s3
	DetailType string // its detail-type
	Bucket     string // the bucket of a change in S3; empty where a message names several
}

// OriginOf reads the envelopes of a message, as many as the depth says. Where two of one kind lie
// around an event, the outer one counts: whoever delivered the message wrote it last. It decodes
// nothing else. A text that cannot be a body has what its beginning says.
func OriginOf(text string, depth int) Origin {
	var o Origin
	for range depth {
		if text = strings.Trim(text, whitespace); text == "" || text[0] != '{' {
			return o
		}
		switch k := recognise(text); k.kind {
		case sns:
			if o.Topic == "" {
				o.Topic = Child(k.whole, "TopicArn").Str
			}
			text = k.message.Str
		case eventBridge:
			if o.Bus == "" {
				o.Bus, o.DetailType = k.source.Str, k.detailType.Str
			}
			if k.source.Str == "aws.s3" {
				o.Bucket = Child(k.detail, "bucket", "name").Str
				return o
			}
			if text = k.detail.Raw; k.detail.Type == gjson.String {
				text = k.detail.Str
			}
		case rabbitOne:
			inside, err := base64.StdEncoding.DecodeString(Child(k.whole, "data").Str)
			if err != nil {
				return o
			}
			text = string(inside)
		case records:
			o.Bucket = bucketOf(k.records)
			return o
		default:
			return o
		}
	}
	return o
}

// bucketOf is the bucket of all records of an S3 notification, empty where they are of several.
func bucketOf(list gjson.Result) string {
	bucket, several := "", false
	list.ForEach(func(_, r gjson.Result) bool {
		name := Child(r, "s3", "bucket", "name").Str
		several = name == "" || bucket != "" && name != bucket
		bucket = name
		return !several
	})
	if several {
		return ""
	}
	return bucket
}
