package layering

// module is the import path that everything of ours begins with.
const module = "github.com/lullhq/lull"

// A rule says what the packages of one layer must not link.
type rule struct {
	name     string
	packages []string // import paths below module
	forbid   []string // import paths, each with everything below it
	except   []string // what forbid would hit and may stay
	direct   []string // as forbid, but direct imports only: fmt itself links os
}

// Families of packages that weigh a function down or tie a use case to a vendor.
var (
	aws = []string{
		"github.com/aws/aws-sdk-go-v2",
		"github.com/aws/aws-lambda-go",
	}
	cdk = []string{
		"github.com/aws/aws-cdk-go",
		"github.com/aws/constructs-go",
		"github.com/aws/jsii-runtime-go",
		"github.com/cdklabs",
	}
	bleve = []string{
		"github.com/blevesearch",
		"go.etcd.io/bbolt",
	}
	commandLine = []string{
		"github.com/spf13",
	}
	yaml = []string{
		"github.com/goccy/go-yaml",
		"go.yaml.in/yaml",
		"gopkg.in/yaml.v2",
		"gopkg.in/yaml.v3",
	}
	testOnly = []string{
		"testing",
		"go.uber.org/goleak",
		"pgregory.net/rapid",
		"github.com/anishathalye/porcupine",
		"github.com/cockroachdb/datadriven",
	}
)

// halves fill the seams; nothing further in may know which one it runs on.
var halves = []string{
	module + "/internal/local/memory",
	module + "/internal/aws/client",
	module + "/internal/aws/secret",
	module + "/internal/aws/sinks",
	module + "/internal/payload",
	module + "/internal/aws/lambda",
	module + "/internal/aws/decisionlog",
	module + "/internal/aws/metrics",
	module + "/internal/aws/cloudwatchlogs",
	module + "/internal/aws/dynamodb",
	module + "/internal/aws/sqs",
	module + "/internal/aws/s3",
	module + "/internal/aws/stepfunctions",
	module + "/sink/blevesink",
	module + "/sink/opensearch",
	module + "/internal/local/dev",
	module + "/internal/local/ledger",
	module + "/internal/local/server",
	module + "/internal/local/story",
	module + "/internal/proof/sim",
	module + "/internal/proof/model",
	module + "/internal/proof/bench",
	module + "/cmd",
	module + "/functions",
	module + "/infra",
}

var rules = []rule{
	{
		name:     "the model is pure",
		packages: []string{"internal/shard"},
		forbid:   join([]string{module}, aws, cdk, bleve, commandLine, yaml, testOnly),
		except:   []string{module + "/internal/shard"},
		direct:   []string{"log", "os", "net", "database"},
	},
	{
		name: "nouns know no vendor",
		packages: []string{
			"internal/clock", "setting", "event", "source", "internal/queue",
			"internal/flight", "sink", "internal/deadletter", "internal/schedule",
			"internal/backoff", "internal/journal", "internal/feed",
		},
		forbid: join(aws, cdk, bleve, commandLine, yaml, testOnly, halves),
	},
	{
		name: "use cases know only seams",
		packages: []string{
			"internal/receive", "internal/index", "internal/prune", "internal/dlq", "internal/redrive",
			"internal/operate",
		},
		forbid: join(aws, cdk, bleve, commandLine, yaml, testOnly, halves),
	},
	{
		name:     "the halves in memory run without a vendor",
		packages: []string{"internal/local/memory"},
		forbid:   join(aws, cdk, bleve, commandLine, yaml, testOnly),
	},
	{
		name:     "the simulator is not `lull dev`",
		packages: []string{"internal/proof/sim"},
		forbid:   []string{module + "/internal/local/dev", module + "/internal/local/server"},
	},
	{
		name:     "functions stay light",
		packages: []string{"functions/receive", "functions/index", "functions/prune", "functions/dlq"},
		forbid: join(cdk, bleve, commandLine, yaml, testOnly, []string{
			module + "/internal/local/memory",
			module + "/sink/blevesink",
			module + "/internal/local/dev",
			module + "/internal/proof/sim",
			module + "/internal/proof/model",
			module + "/internal/proof/bench",
		}),
	},
	{
		name:     "settings know kinds by their registration only",
		packages: []string{"internal/config", "internal/config/yamlfile"},
		forbid:   join(aws, cdk, bleve, commandLine, testOnly, halves),
	},
	{
		name:     "only index links the kinds of sinks",
		packages: []string{"functions", "functions/receive", "functions/prune", "functions/dlq"},
		forbid: []string{
			"github.com/opensearch-project", module + "/sink/opensearch", module + "/sink/builtin",
		},
	},
	{
		name:     "the command line provisions nothing",
		packages: []string{"cmd/lull"},
		forbid:   join(cdk, []string{module + "/infra"}),
	},
}

func join(lists ...[]string) []string {
	var all []string
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}
