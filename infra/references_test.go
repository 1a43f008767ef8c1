// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// NewLull checks ARNs with the account and region of its stack, so callers need not call
// ValidateIn. The test is not parallel, because CDK's runtime allows only one call at a time.
func TestNewLullRefusesWhatItsStackCannotReach(t *testing.T) {
	stackOf(t, plainStack) // starts the runtime
	const elsewhere = "arn:aws:kafka:us-east-1:111122223333:cluster/content/1"
	for name, tt := range map[string]struct {
		env  *awscdk.Environment
		want string
	}{
		"another region": {
			&awscdk.Environment{Account: jsii.String("111122223333"), Region: jsii.String("eu-west-1")},
			"Upstreams[0].Pipe.Kafka.Cluster (" + elsewhere + "): is not in the stack's region eu-west-1",
		},
		"its own": {
			&awscdk.Environment{Account: jsii.String("111122223333"), Region: jsii.String("us-east-1")}, "",
		},
		"any": {nil, ""},
	} {
		stack := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("Lull"), &awscdk.StackProps{Env: tt.env})
		got := func() (said string) {
			defer func() {
				if r := recover(); r != nil {
					said = fmt.Sprint(r)
				}
			}()
			NewLull(stack, "Lull", &Props{Config: deployable("lull"), AssetDir: builtPrograms(t), Upstreams: []Upstream{
				{Pipe: &Pipe{Name: "p", Kafka: &Kafka{Cluster: elsewhere, Topic: "pages"}}},
			}})
			return ""
		}()
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
