// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"encoding/json"
	"slices"

	"github.com/lullhq/lull/internal/config"
)

// indexLists returns how many characters each list has in the policy of a sink's index. The key is
// the field of the settings or of Props that makes the list longer. The sizes are those in the
// partition with the longest name.
func (p *Props) indexLists(sink string) map[string]int {
	var fetched []config.BucketPrefix
	var secrets, functions []string
	for _, from := range p.Config.Sources {
		if from.Fetch == nil {
			continue
		}
		secrets = append(secrets, from.Fetch.Headers.SecretARN)
		if bucket, prefix, ok := from.Fetch.Bucket(); ok {
			fetched = append(fetched, config.BucketPrefix{Bucket: bucket, Prefix: prefix})
		}
	}
	for _, name := range p.Config.Enriched(sink) {
		e := p.Config.Collections[string(name)].Enrich
		functions = append(functions, e.FunctionARN, e.Headers.SecretARN)
	}
	const keyLists = 4 // otherKeys of references, what is fetched, headers and the sink's password
	return map[string]int{
		"collections":   p.rowKeysSize(sink) + listSize(functions),
		"payload.allow": placesSize(p.Config.Payload.Allow),
		"sources":       placesSize(fetched) + listSize(secrets),
		"ReadKeyARNs":   keyLists * listSize(p.ReadKeyARNs),
	}
}

// placesSize returns how many characters the resources of loadRights have in a policy.
func placesSize(places []config.BucketPrefix) (size int) {
	var buckets []string
	for _, place := range places {
		bucket := "arn:aws-us-gov:s3:::" + place.Bucket
		size += listSize([]string{bucket + "/" + place.Prefix + "*"})
		if !slices.Contains(buckets, bucket) {
			buckets = append(buckets, bucket)
		}
	}
	return size + listSize(buckets)
}

// listSize returns how many characters a list of texts has in a policy. It counts a comma after
// each text, also after the last one.
func listSize(list []string) (size int) {
	for _, text := range list {
		quoted, err := json.Marshal(text)
		if err != nil {
			panic(err) // cannot happen: a text can always be encoded in JSON
		}
		size += len(quoted) + len(",")
	}
	return size
}
