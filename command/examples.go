// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"

	"github.com/spf13/cobra"
)

// addExamples gives each command below c the examples of its help.
func addExamples(c *cobra.Command) {
	for _, sub := range c.Commands() {
		addExamples(sub)
	}
	lines := examples[strings.TrimPrefix(c.CommandPath(), "lull ")]
	if len(lines) > 0 {
		c.Example = "  lull " + strings.Join(lines, "\n  lull ")
	}
}

// examples are command lines for each command, by the command's path. The word lull before each is
// left out.
var examples = map[string][]string{
	"dev": {
		"dev",
		"dev --config lull.yaml --local --data state",
		"dev --events events.ndjson --exit-when-idle --dump documents.ndjson",
		"dev --config lull.yaml --sink opensearch:http://127.0.0.1:9200 --install-template",
	},
	"new":      {"new shop", "new shop --source debezium --sink postgres --stack shop-test"},
	"cost":     {"cost --config lull.yaml --load 20", "cost --config lull.yaml --load 500 --burst 5 --documents 2000000"},
	"simulate": {"simulate --config lull.yaml --load 50 --for 30m", "simulate --load 20 --for 2h --sink-down 30m-90m --plot outage.svg"},
	"doctor":   {"doctor", "doctor --aws --source products"},
	"publish":  {"publish events.ndjson", "publish --example", "publish --aws --lane bulk events.ndjson.gz"},
	"wait":     {"wait 'content#vienna' --version 7", "wait 'content#vienna' --version 7 --timeout 2m --aws"},
	"get":      {"get 'content#vienna'", "get 'content@vectors#vienna' -o json"},
	"explain":  {"explain 'content#vienna'", "explain 'content#vienna' --aws --logs 3h"},
	"list":     {"list --state waiting", "list --collection content --contains vienna --limit 20"},
	"status":   {"status", "status --aws -o json"},
	"console":  {"console --aws", "console --aws --listen 127.0.0.1:7180 --logs 3h"},
	"dead list": {
		"dead list", "dead list --reason rejected --after 2h --collection content",
	},
	"dead show": {"dead show 01JC4Z", "dead show 01JC4Z -o json"},
	"dead redrive": {
		"dead redrive 01JC4Z", "dead redrive --reason rejected --collection content --dry-run",
	},
	"dead drop": {"dead drop 01JC4Z --yes", "dead drop --reason undecodable --before 72h --dry-run"},
	"pause":     {"pause search --why 'the cluster is upgraded'", "pause --all"},
	"resume":    {"resume search", "resume --all"},
	"cancel":    {"cancel 'content#vienna'", "cancel 'content#vienna' --scheduled"},
	"forget":    {"forget 'content#vienna'", "forget --group tenant-7 --yes --aws"},
	"reset":     {"reset 'content#vienna' --to 8", "reset 'content#vienna' --to 8 --epoch 2 --yes"},
	"index check": {
		"index check content", "index check content --source export.ndjson --complete-at 2026-11-01T09:00:00Z",
	},
	"index repair": {"index repair content", "index repair content --source export.ndjson --yes"},
	"index install-template": {
		"index install-template --aws", "index install-template --aws --print",
	},
	"rebuild":        {"rebuild content --dry-run", "rebuild content --mapping mapping.json"},
	"rebuild status": {"rebuild status", "rebuild status -o json"},
	"rebuild resume": {"rebuild resume", "rebuild resume --sink search --allow 2"},
	"rebuild abort":  {"rebuild abort", "rebuild abort --sink search"},
	"resync":         {"resync export.ndjson", "resync s3://exports/content.ndjson.gz --rate 500 --aws"},
	"replay": {
		"replay --from 2026-11-01T09:00:00Z --to 2026-11-01T10:00:00Z --dry-run",
		"replay --from 2026-11-01T09:00:00Z --collection content --aws",
	},
	"backfill":        {"backfill content --sink vectors --dry-run", "backfill content --sink vectors --from search --rate 100"},
	"jobs":            {"jobs", "jobs -o json"},
	"jobs stop":       {"jobs stop resync-search", "jobs stop resync-search --aws"},
	"jobs drop":       {"jobs drop resync-search", "jobs drop resync-search --aws"},
	"config check":    {"config check --deploy", "config check --message events.ndjson"},
	"config show":     {"config show --defaults", "config show shop.yaml -o json"},
	"config schema":   {"config schema", "config schema > lull.schema.json"},
	"config diff":     {"config diff old.yaml lull.yaml", "config diff old.yaml lull.yaml -o json"},
	"rescue":          {"rescue search-01JC4ZQ7W9", "rescue search-01JC4ZQ7W9 --aws"},
	"object":          {"object s3://exports/content.ndjson", "object s3://exports/content.ndjson --abort --why 'wrong file'"},
	"bridge rabbitmq": {"bridge rabbitmq --queue changes", "bridge rabbitmq --queue changes --aws --park refused --prefetch 500"},
	"bridge postgres": {
		"bridge postgres --url postgres://lull@127.0.0.1/shop --copy copied.json",
		"bridge postgres --aws --to search --copy copied.json --listen 127.0.0.1:7072",
	},
	"bridge postgres setup": {"bridge postgres setup articles", "bridge postgres setup shop.articles shop.authors --role reader"},
	"completion":            {"completion bash", "completion zsh"},
	"version":               {"version", "version -o json"},
}
