// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/queue"
)

// receive believes the operator's role. A publication carries what somebody else wrote.
func TestAPublicationSaysNothingInLullsName(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		line := queue.Line{Number: 1, Object: "s3://b/k"}
		_, err := api.Publish(t.Context(), operate.Publication{Messages: []queue.Outgoing{{
			Body: put("1", 1), Attributes: map[string]queue.Attribute{
				queue.AttrLine: queue.Text(line.Text()), queue.AttrEvent: queue.Text("0"),
				queue.AttrGroup: queue.Text("g"),
			},
		}}})
		sent, bad := g.queues["search live"].Receive(t.Context(), 10, 0)
		if err != nil || bad != nil || len(sent) != 1 || len(sent[0].Attributes) != 1 ||
			queue.Group(sent[0].Attributes) != "g" {
			t.Errorf("sent %+v, %v, %v", sent, err, bad)
		}
	})
}
