// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// resource is a resource of a stack, as CloudFormation describes it.
type resource struct {
	Type     string `xml:"ResourceType"`
	Physical string `xml:"PhysicalResourceId"`
	Logical  string `xml:"LogicalResourceId"`
	Status   string `xml:"ResourceStatus"`
}

// deployedName is the name of the stack of CloudFormation. All other names begin with r.stack.
func (r *runner) deployedName() string { return r.stack + "-express" }

// destroy deletes the stack and everything beside it, and looks for what is left.
func (r *runner) destroy(ctx context.Context) (string, error) {
	status, err := r.stackStatus(ctx)
	if err != nil {
		return "", err
	}
	if status != "" {
		// A deleted stack has no list. So a removal that continues finds it in the file.
		if r.state.Resources, err = r.resources(ctx); err != nil {
			return "", err
		}
		if err := r.save(); err != nil {
			return "", err
		}
		for _, x := range r.state.Resources {
			if x.Type == "AWS::S3::Bucket" && x.Physical != "" { // a bucket that failed has no name
				// CloudFormation deletes only an empty bucket.
				if err := r.g.EmptyBucket(ctx, x.Physical); err != nil {
					return "", err
				}
			}
		}
		err = r.deleteStack(ctx)
	}
	// A stack that cannot be deleted must not keep the domain, which costs money.
	err = errors.Join(err, r.g.RemoveUpstreams(ctx, r.deployedName()), r.removeEngine(ctx))
	if err != nil {
		return "", err
	}
	r.state.Left, err = r.left(ctx, r.state.Resources)
	r.s = nil
	return "", err
}

// resources returns all resources of the stack. DescribeStackResources would return only 100.
func (r *runner) resources(ctx context.Context) ([]resource, error) {
	var all []resource
	for form := (url.Values{"StackName": {r.deployedName()}}); ; {
		answer, err := r.g.Query(ctx, "cloudformation", cloudFormation, "ListStackResources", form)
		if err != nil {
			return nil, fmt.Errorf("list the resources of the stack: %w", err)
		}
		var page struct {
			All  []resource `xml:"ListStackResourcesResult>StackResourceSummaries>member"`
			Next string     `xml:"ListStackResourcesResult>NextToken"`
		}
		if err := xml.Unmarshal(answer, &page); err != nil {
			return nil, fmt.Errorf("list the resources of the stack: %w", err)
		}
		if all = append(all, page.All...); page.Next == "" {
			break
		}
		form.Set("NextToken", page.Next)
	}
	return all, nil
}

// deletionTakes is the longest time that CloudFormation may take to delete the stack.
const deletionTakes = 20 * time.Minute

func (r *runner) deleteStack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deletionTakes)
	defer cancel()
	// CloudFormation refuses to delete a stack that is being updated, such as after Ctrl-C.
	for {
		status, err := r.stackStatus(ctx)
		if err != nil || status == "" {
			return err
		}
		if !strings.HasPrefix(status, "UPDATE_") || !strings.HasSuffix(status, "_IN_PROGRESS") {
			break
		}
		if err := sleep(ctx, time.Second); err != nil {
			return fmt.Errorf("wait for the stack, whose status is %s: %w", status, err)
		}
	}
	_, err := r.g.Query(ctx, "cloudformation", cloudFormation, "DeleteStack", url.Values{"StackName": {r.deployedName()}})
	if err != nil {
		return fmt.Errorf("delete the stack: %w", err)
	}
	for {
		status, err := r.stackStatus(ctx)
		switch {
		case err != nil || status == "":
			return err
		case strings.HasSuffix(status, "_FAILED"):
			return fmt.Errorf("delete the stack: CloudFormation ended with %s; the console of CloudFormation says why", status)
		}
		if err := sleep(ctx, time.Second); err != nil {
			return fmt.Errorf("delete the stack, whose status is %s: %w", status, err)
		}
	}
}

// removeEngine removes the domain that the run made, or the indices of its stack in an engine that
// others use too.
func (r *runner) removeEngine(ctx context.Context) error {
	if r.state.Domain {
		if _, found, err := r.g.Domain(ctx, r.stack); err != nil || !found {
			return err
		}
		return r.g.RemoveDomain(ctx, r.stack)
	}
	if r.state.Search == "" {
		return nil
	}
	return r.g.Search.Remove(ctx, r.deployedName())
}

// left returns what still exists of the resources, and what a run leaves on purpose.
func (r *runner) left(ctx context.Context, all []resource) (left []string, err error) {
	for _, x := range all {
		if x.Physical == "" {
			continue // CloudFormation never made it
		}
		exists, err := r.g.Exists(ctx, x.Type, x.Physical)
		if err != nil {
			return nil, fmt.Errorf("look whether %s %s is left: %w", x.Type, x.Physical, err)
		}
		if exists {
			left = append(left, fmt.Sprintf("%s %s: CloudFormation did not delete it. Delete it by hand", x.Type, x.Physical))
		}
	}
	if r.state.Domain {
		left = append(left, "the domain "+r.stack+": AWS deletes it in the next minutes")
	}
	if r.backend != onMinistack {
		left = append(left, "the stack CDKToolkit with its bucket and roles: other stacks of this account may use it")
	}
	return left, nil
}
