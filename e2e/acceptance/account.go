// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/lullhq/lull/e2e/ground"
)

var (
	accountID = regexp.MustCompile(`^[0-9]{12}$`)
	stackName = regexp.MustCompile(`^lull-[a-z0-9-]{1,19}$`)
	// production matches an account's alias that has one of these words.
	production = regexp.MustCompile(`(?i)(^|[^a-z])(prod|prd|production|live)([^a-z]|$)`)
)

// check compares the account of the credentials with the account that the operator named, and
// refuses an account of production.
func (r *runner) check(ctx context.Context) error {
	answer, err := r.g.Query(ctx, "sts", "2011-06-15", "GetCallerIdentity", nil)
	if err != nil {
		return fmt.Errorf("ask AWS whose credentials these are: %w", err)
	}
	var who struct {
		Account string `xml:"GetCallerIdentityResult>Account"`
	}
	if err := xml.Unmarshal(answer, &who); err != nil {
		return fmt.Errorf("read whose credentials these are: %w", err)
	}
	if who.Account != r.g.AccountID {
		return fmt.Errorf("-account is %s, and the credentials belong to account %s", r.g.AccountID, who.Account)
	}
	if !r.g.Real {
		return nil
	}
	if answer, err = r.g.Query(ctx, "iam", "2010-05-08", "ListAccountAliases", nil); err != nil {
		return fmt.Errorf("read the alias of the account, to see whether it is one of production "+
			"(allow iam:ListAccountAliases): %w", err)
	}
	return refuseProduction(answer)
}

// refuseProduction returns an error if an alias in the answer of ListAccountAliases names
// production.
func refuseProduction(answer []byte) error {
	var all struct {
		Names []string `xml:"ListAccountAliasesResult>AccountAliases>member"`
	}
	if err := xml.Unmarshal(answer, &all); err != nil {
		return fmt.Errorf("read the alias of the account: %w", err)
	}
	for _, name := range all.Names {
		if production.MatchString(name) {
			return fmt.Errorf("the alias of this account is %q: acceptance does not run in an account of production", name)
		}
	}
	return nil
}

// cloudFormation is the version of CloudFormation's interface.
const cloudFormation = "2010-05-15"

// stackStatus returns the status of the stack, such as CREATE_COMPLETE. It is empty if there is no
// such stack.
func (r *runner) stackStatus(ctx context.Context) (string, error) {
	status, _, err := r.describe(ctx)
	return status, err
}

// describe returns the status of the stack, and whether acceptance deployed it. The status is empty
// if there is no such stack.
func (r *runner) describe(ctx context.Context) (status string, own bool, err error) {
	answer, err := r.g.Query(ctx, "cloudformation", cloudFormation, "DescribeStacks", url.Values{"StackName": {r.deployedName()}})
	if err != nil {
		if strings.Contains(err.Error(), "does not exist") {
			return "", false, nil
		}
		return "", false, fmt.Errorf("look for the stack: %w", err)
	}
	type tag struct{ Key, Value string }
	var found struct {
		Status []string `xml:"DescribeStacksResult>Stacks>member>StackStatus"`
		Tags   []tag    `xml:"DescribeStacksResult>Stacks>member>Tags>member"`
	}
	if err := xml.Unmarshal(answer, &found); err != nil {
		return "", false, fmt.Errorf("read the status of the stack: %w", err)
	}
	if len(found.Status) == 0 || found.Status[0] == "DELETE_COMPLETE" {
		return "", false, nil
	}
	return found.Status[0], slices.Contains(found.Tags, tag{ground.MadeBy, ground.Acceptance}), nil
}

// deployedHere returns an error if another program deployed a stack of the name. It is needed only
// if the file that says what the run made is lost.
func (r *runner) deployedHere(ctx context.Context) error {
	status, own, err := r.describe(ctx)
	if err == nil && status != "" && !own {
		err = fmt.Errorf("acceptance did not deploy the stack %s, which lacks the tag %s: %s, and %s does not know it: "+
			"delete the stack in the console of CloudFormation if it is yours", r.deployedName(), ground.MadeBy,
			ground.Acceptance, r.file)
	}
	return err
}

// unused returns an error if there is a stack or a domain that this run did not make. The run would
// write to it, and delete it.
func (r *runner) unused(ctx context.Context) error {
	status, err := r.stackStatus(ctx)
	if err == nil && status != "" {
		err = errors.New("there is a stack " + r.deployedName() + " already, and " + r.file + " does not know it: choose another " +
			"name with -stack, or remove it with -clean")
	}
	if err != nil || r.backend != onAWS || r.search != "" {
		return err
	}
	_, found, err := r.g.Domain(ctx, r.stack)
	if err == nil && found {
		err = errors.New("there is an OpenSearch domain " + r.stack + " already, and " + r.file + " does not know it: " +
			"choose another name with -stack, or wait if AWS is deleting the domain")
	}
	return err
}
