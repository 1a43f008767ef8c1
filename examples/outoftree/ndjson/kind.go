// SPDX-License-Identifier: Apache-2.0

package ndjson

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

// Name is the name of this kind in lull.yaml.
const Name = "ndjson"

// Options are the settings that only this kind has.
type Options struct {
	// Suffix is the end of each file's name. Default ".ndjson".
	Suffix string `json:"suffix"`
}

var suffixPattern = regexp.MustCompile(`^\.[a-z0-9.]{1,16}$`)

func init() {
	sink.Register(sink.Kind{
		Kind: setting.Kind{
			Name: Name, Doc: "Files of newline-delimited JSON in a bucket.",
			Options: Options{Suffix: ".ndjson"},
			Settings: []setting.Setting{
				setting.Text("suffix", suffixPattern, "a dot, then up to 16 lower-case letters, digits or dots",
					"The end of the name of each file."),
			},
		},
		Schemes:      []string{"s3"},
		Capabilities: func(sink.Settings) sink.Capabilities { return sink.Capabilities{WriteOnly: true} },
		Check:        check,
		Open:         open,
	})
}

// check refuses credentials in the settings, because the sink uses the credentials of the process.
func check(s sink.Settings) []setting.Problem {
	if s.Auth.Kind == sink.AuthNone {
		return nil
	}
	return []setting.Problem{{
		Setting: "auth.kind", Value: string(s.Auth.Kind), Problem: "is not for a bucket, which takes the function's role",
		Fix: "write none, and give the role s3:PutObject",
	}}
}

func open(ctx context.Context, s sink.Settings, _ sink.Environment) (sink.Sink, error) {
	place, err := url.Parse(s.URL)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	account, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("find AWS credentials: %w", err)
	}
	prefix := strings.Trim(place.Path, "/")
	if prefix != "" {
		prefix += "/"
	}
	options, _ := s.Options.(Options) // lull refuses options of another type
	return New(NewBucket(s3.NewFromConfig(account), place.Host), prefix, options), nil
}
