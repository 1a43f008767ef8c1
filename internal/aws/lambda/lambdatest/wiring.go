// SPDX-License-Identifier: Apache-2.0

package lambdatest

import (
	"io"
	"log/slog"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/config"
)

// Environment returns all environment variables that Lambda and package infra set. The caller may
// change the map.
func Environment() map[string]string {
	const queues = "https://sqs.eu-west-1.amazonaws.com/123456789012/lull-search-"
	return map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_SESSION_TOKEN": "token",
		lambda.EnvSink:      "search", lambda.EnvTable: "lull-shards", lambda.EnvBucket: "lull-123456789012-eu-west-1",
		lambda.EnvLiveQueue: queues + "live", lambda.EnvBulkQueue: queues + "bulk", lambda.EnvDeadQueue: queues +
			"dead",
		lambda.EnvLiveQueues: queues + "live", lambda.EnvBulkQueues: queues + "bulk",
		lambda.EnvSenders:  "AROARECEIVE,AROAINDEX,123456789012",
		lambda.EnvExpress:  "arn:aws:states:eu-west-1:123456789012:stateMachine:lull-search-express",
		lambda.EnvStandard: "arn:aws:states:eu-west-1:123456789012:stateMachine:lull-search-standard",
	}
}

// Setup returns the Setup of a function: the default settings with one OpenSearch sink, an
// environment, and a journal that writes to out.
func Setup(function string, vars map[string]string, out io.Writer) *lambda.Setup {
	c := config.Default()
	s := c.Sinks["search"]
	s.Kind, s.URL = "opensearch", "https://search.example.org"
	c.Sinks["search"] = s
	return &lambda.Setup{
		Config: &c, Sink: "search", Getenv: func(name string) string { return vars[name] },
		Journal: lambda.NewJournal(out, slog.LevelInfo,
			metrics.Base{Stack: "lull", Sink: "search", Function: function}),
	}
}
