// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"

	"github.com/lullhq/lull/e2e/ground"
)

// A command with the credentials of a role must not run with those of the account's owner.
func TestTheCredentialsOfARoleHaveTheNamesOfAWS(t *testing.T) {
	g := cloud(t, map[string]string{"AssumeRole": "<A><AccessKeyId>id</AccessKeyId>" +
		"<SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken></A>"})
	c := config.Default()
	s := &ground.Stack{Ground: g, Names: names.Of(&c)}
	want := ground.Who{"AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret", "AWS_SESSION_TOKEN=token"}
	if got := s.Role(t, "reader"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
