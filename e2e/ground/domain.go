// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// domains is the path of the domains in the interface of OpenSearch Service
// (docs.aws.amazon.com/opensearch-service/latest/APIReference).
const domains = "/2021-01-01/opensearch/domain"

// Domain returns the address of an OpenSearch domain, without https://. The address is empty until
// the domain can be reached.
func (g *Ground) Domain(ctx context.Context, name string) (address string, found bool, err error) {
	var d struct{ DomainStatus struct{ Endpoint string } }
	err = g.json(ctx, "es", http.MethodGet, domains+"/"+name, nil, &d, http.Header{})
	// OpenSearch Service answers with status 409 if there is no such domain.
	if err != nil && strings.Contains(err.Error(), "ResourceNotFoundException") {
		return "", false, nil
	}
	return d.DomainStatus.Endpoint, err == nil, err
}

// MadeBy is the tag of what acceptance makes: the domain and the stack.
const MadeBy = "lull:made-by"

// Acceptance is the value of the tag MadeBy.
const Acceptance = "acceptance"

// OwnDomain reports whether there is a domain of this name, and MakeDomain has made it.
func (g *Ground) OwnDomain(ctx context.Context, name string) (bool, error) {
	if _, found, err := g.Domain(ctx, name); err != nil || !found {
		return false, err
	}
	var tags struct{ TagList []struct{ Key string } }
	query := url.Values{"arn": {g.domainARN(name)}}
	if err := g.json(ctx, "es", http.MethodGet, "/2021-01-01/tags/?"+query.Encode(), nil, &tags, http.Header{}); err != nil {
		return false, err
	}
	for _, tag := range tags.TagList {
		if tag.Key == MadeBy {
			return true, nil
		}
	}
	return false, nil
}

func (g *Ground) domainARN(name string) string {
	return "arn:aws:es:" + g.Account.Region + ":" + g.AccountID + ":domain/" + name
}

// MakeDomain asks for a domain of one small node. It trusts the roles of the account.
func (g *Ground) MakeDomain(ctx context.Context, name string) error {
	policy, err := json.Marshal(map[string]any{
		"Version": "2012-10-17",
		"Statement": []any{map[string]any{
			"Effect": "Allow", "Action": "es:ESHttp*",
			"Principal": map[string]any{"AWS": "arn:aws:iam::" + g.AccountID + ":root"},
			"Resource":  g.domainARN(name) + "/*",
		}},
	})
	if err != nil {
		return err
	}
	on := map[string]any{"Enabled": true}
	return g.json(ctx, "es", http.MethodPost, domains, map[string]any{
		"DomainName": name, "EngineVersion": "OpenSearch_2.19", "AccessPolicies": string(policy),
		"ClusterConfig": map[string]any{"InstanceType": "t3.small.search", "InstanceCount": 1},
		"EBSOptions":    map[string]any{"EBSEnabled": true, "VolumeType": "gp3", "VolumeSize": 10},
		"DomainEndpointOptions": map[string]any{
			"EnforceHTTPS": true, "TLSSecurityPolicy": "Policy-Min-TLS-1-2-2019-07",
		},
		"TagList":                     []any{map[string]any{"Key": MadeBy, "Value": Acceptance}},
		"NodeToNodeEncryptionOptions": on, "EncryptionAtRestOptions": on,
	}, nil, http.Header{"Content-Type": {"application/json"}})
}

// RemoveDomain asks AWS to delete a domain. AWS needs some minutes for that.
func (g *Ground) RemoveDomain(ctx context.Context, name string) error {
	return g.json(ctx, "es", http.MethodDelete, domains+"/"+name, nil, nil, http.Header{})
}
