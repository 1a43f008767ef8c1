// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/operator/searchability"
	"github.com/lullhq/lull/internal/seam/clock"
)

// Searchable runs the function behind the stack's URL, which says whether a search finds a version
// of a document (docs/searchable.md). It only reads rows. It does not return.
func Searchable() { lambda.MainOfStack("searchable", wireSearchable) }

func wireSearchable(s *lambda.Setup) (lambda.Handler, error) {
	aws, err := client.FromEnv(s.Getenv)
	if err != nil {
		return nil, err
	}
	table := dynamodb.New(aws, s.Name(lambda.EnvTable))
	s.Table(table.Counts)
	answers := searchability.Service{Shards: s.Reported(table), Config: s.Config, Clock: clock.System{}}
	return &lambda.URL{
		Handler: searchability.Handler(answers.Answer, func(err error) {
			s.Journal.Log.Error("a question was not answered", "error", err.Error())
		}),
		Limit: lambda.SearchableTimeout, Journal: s.Journal,
	}, nil
}
