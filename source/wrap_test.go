package source_test

import (
	"encoding/base64"
	"encoding/json"
)

// wrapped puts a body into an envelope.
func wrapped(envelope, body string) string {
	quoted, err := json.Marshal(body)
	if err != nil {
		return ""
	}
	rabbit := `{"basicProperties":{"contentType":"application/json","headers":{}},"redelivered":false,"data":"` +
		base64.StdEncoding.EncodeToString([]byte(body)) + `"}`
	switch envelope {
	case "sns":
		return `{"Type":"Notification","MessageId":"m","TopicArn":"arn:aws:sns:eu-west-1:123456789012:t","Message":` +
			string(quoted) + `}`
	case "eventbridge":
		return `{"version":"0","id":"i","detail-type":"changed","source":"cms","region":"eu-west-1","detail":` + body +
			`}`
	case "quoted":
		return `{"version":"0","id":"i","detail-type":"changed","source":"cms","region":"eu-west-1","detail":` +
			string(quoted) + `}`
	case "rabbit":
		return rabbit
	case "batch":
		return `{"eventSource":"aws:rmq","rmqMessagesByQueue":{"q::/":[` + rabbit + `]}}`
	}
	return body
}
