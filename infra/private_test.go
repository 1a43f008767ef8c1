// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"strings"
	"testing"
)

// index reaches each service that its role names, though its network has no way to the internet.
func TestThePrivateNetworkHasAnEndpointForEachServiceThatIndexCalls(t *testing.T) {
	t.Parallel()
	s := stackOf(t, privateStack)
	for id, r := range s.Resources {
		if r.Type == "AWS::EC2::NatGateway" || r.Type == "AWS::EC2::InternetGateway" {
			t.Errorf("%s is a way to the internet", id)
		}
	}
	there := make(map[string]bool)
	for _, r := range s.all("AWS::EC2::VPCEndpoint") {
		name := s.text(r.Properties["ServiceName"])
		there[name[strings.LastIndex(name, ".")+1:]] = true
	}
	called := make(map[string]bool)
	for _, g := range s.grants() {
		if !strings.HasSuffix(g.role, "/IndexRole") || g.sid == "Log" || g.sid == "NetworkInterface" {
			continue // Lambda itself makes these calls, from outside of the network
		}
		for _, action := range g.actions {
			service, _, _ := strings.Cut(action, ":")
			called[service] = true
		}
	}
	if len(called) < 5 || !called["secretsmanager"] {
		t.Errorf("index calls %v: the test looks in the wrong place", called)
	}
	for service := range called {
		if !there[service] {
			t.Errorf("index calls %s, for which the network has no endpoint: it has %v", service, there)
		}
	}
	index := s.named(t, "AWS::Lambda::Function", "FunctionName", privateStack+"-search-index")
	if ids := items(dig(index.Properties["VpcConfig"], "SubnetIds")); len(ids) != 2 {
		t.Errorf("index is in %d subnets, want 2", len(ids))
	}
}
