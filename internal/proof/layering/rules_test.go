// SPDX-License-Identifier: Apache-2.0

package layering

import "slices"

// module is the import path of this module.
const module = "github.com/lullhq/lull"

// A rule says what some packages must not link, directly or through other packages.
type rule struct {
	name   string
	of     []string // the folders that the rule applies to
	but    []string // folders that the rule does not apply to
	forbid []string // forbidden import paths, each with all packages below it
	direct []string // like forbid, but only for direct imports, because fmt itself links os
}

// Groups of packages that make a function larger or tie a use case to a vendor.
var (
	aws   = []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/aws-lambda-go"}
	cdk   = []string{"github.com/aws/aws-cdk-go", "github.com/aws/constructs-go", "github.com/aws/jsii-runtime-go"}
	local = []string{
		module + "/internal/local", module + "/internal/fault", module + "/internal/simulation", module + "/internal/proof",
		module + "/sink/memorysink",
	}
	bolt  = []string{"go.etcd.io/bbolt"}
	heavy = []string{
		"github.com/blevesearch", "github.com/spf13", "github.com/goccy/go-yaml", "github.com/rabbitmq",
		"github.com/jackc/pglogrepl", "go.yaml.in/yaml", "gopkg.in/yaml.v2", "gopkg.in/yaml.v3",
	}
	testOnly = []string{
		"testing", "go.uber.org/goleak", "pgregory.net/rapid", "github.com/anishathalye/porcupine",
		"github.com/cockroachdb/datadriven",
	}
	kinds = []string{
		module + "/sink/elasticsearch", module + "/sink/opensearch", module + "/sink/postgres", module + "/sink/typesense",
		module + "/sink/vertex", module + "/sink/webhook", module + "/sink/blevesink", module + "/sink/memorysink",
		module + "/sink/builtin",
	}
)

var rules = []rule{
	{
		name: "the protocol is pure", of: []string{"internal/shard"},
		forbid: slices.Concat(aws, cdk, heavy, bolt, testOnly), direct: []string{"log", "os", "net", "database"},
	},
	{
		name: "seams and use cases know no vendor",
		of: []string{
			"event", "source", "sink", "setting", "internal/terminal", "internal/seam", "internal/config", "internal/deploy",
			"internal/pipeline", "internal/operator",
		},
		but: append([]string{
			"internal/config/yamlfile", "internal/deploy/release", "internal/operator/bridge/rabbitmq",
			"internal/operator/bridge/postgres",
		}, below(kinds)...),
		forbid: slices.Concat(aws, cdk, heavy, bolt, testOnly),
	},
	{
		name: "use cases know neither half of a seam", of: []string{"internal/pipeline", "internal/operator"},
		forbid: append([]string{module + "/internal/aws"}, slices.Concat(local, kinds)...),
	},
	{
		name: "the local half runs without AWS", of: []string{"internal/local", "internal/fault"},
		forbid: slices.Concat(aws, cdk, heavy, testOnly, []string{module + "/internal/aws"}),
	},
	{
		name: "only lull dev keeps a file", of: []string{"internal/local"},
		but: []string{"internal/local/durable", "internal/local/dev", "internal/local/server"}, forbid: bolt,
	},
	{name: "the AWS half knows nothing local", of: []string{"internal/aws"}, forbid: slices.Concat(heavy, bolt, local)},
	{name: "functions stay light", of: []string{"functions"}, forbid: slices.Concat(cdk, heavy, bolt, testOnly, local)},
	{
		name: "only index and job link the kinds of sinks", of: []string{"functions"},
		but: []string{"functions/index", "functions/job"}, forbid: kinds,
	},
	{name: "settings know kinds by their registration", of: []string{"internal/config"}, forbid: kinds},
	{
		name: "the simulator is not lull dev", of: []string{"internal/simulation/sim"},
		forbid: []string{module + "/internal/local/dev", module + "/internal/local/server"},
	},
	{
		name: "the command line provisions nothing", of: []string{"cmd", "command"},
		forbid: append(cdk, module+"/infra"),
	},
}
