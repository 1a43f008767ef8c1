// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"testing"

	"github.com/lullhq/lull/internal/deploy/names"
)

// CodeDeploy shifts each function, and each alarm that ends a rollout exists before the rollout.
func TestARolloutShiftsEachFunctionAndWatchesItsAlarms(t *testing.T) {
	t.Parallel()
	s := stackOf(t, fullStack)
	exists := make(map[string]bool)
	for _, r := range s.all("AWS::CloudWatch::Alarm") {
		exists[s.text(r.Properties["AlarmName"])] = true
	}
	groups := s.all("AWS::CodeDeploy::DeploymentGroup")
	if want := 2 * len(names.Functions()); len(groups) != want {
		t.Errorf("there are %d deployment groups, want %d", len(groups), want)
	}
	for id, g := range groups {
		s.same(t, id, g, map[string]any{
			"DeploymentConfigName":                      "CodeDeployDefault.LambdaCanary10Percent5Minutes",
			"DeploymentStyle.DeploymentType":            "BLUE_GREEN",
			"DeploymentStyle.DeploymentOption":          "WITH_TRAFFIC_CONTROL",
			"AutoRollbackConfiguration.Enabled":         true,
			"AlarmConfiguration.Enabled":                true,
			"AlarmConfiguration.Alarms.#10":             nil, // CodeDeploy refuses an eleventh
			"AutoRollbackConfiguration.Events.#1":       "DEPLOYMENT_STOP_ON_ALARM",
			"AlarmConfiguration.IgnorePollAlarmFailure": nil,
		})
		watched := items(dig(g.Properties["AlarmConfiguration"], "Alarms"))
		if len(watched) == 0 {
			t.Errorf("%s watches no alarm", id)
		}
		for _, alarm := range watched {
			if name := s.text(dig(alarm, "Name")); !exists[name] {
				t.Errorf("%s watches the alarm %s, which the stack does not have", id, name)
			}
		}
	}
	shifted := make(map[string]bool)
	for id, alias := range s.all("AWS::Lambda::Alias") {
		group := word(dig(alias.UpdatePolicy, "CodeDeployLambdaAliasUpdate", "DeploymentGroupName", "Ref"))
		if _, ok := groups[group]; !ok {
			t.Errorf("%s is not shifted by CodeDeploy: %v", id, alias.UpdatePolicy)
		}
		shifted[group] = true
	}
	if len(shifted) != len(groups) {
		t.Errorf("%d of %d deployment groups shift an alias", len(shifted), len(groups))
	}
	for id, v := range s.all("AWS::Lambda::Version") {
		if v.DeletionPolicy != "Retain" {
			t.Errorf("%s is not kept for the way back: %q", id, v.DeletionPolicy)
		}
	}
}

func TestWithoutARolloutThereIsNoCodeDeploy(t *testing.T) {
	t.Parallel()
	s := stackOf(t, plainStack)
	for id, r := range s.Resources {
		if r.UpdatePolicy != nil || r.Type == "AWS::CodeDeploy::Application" || r.Type == "AWS::CodeDeploy::DeploymentGroup" {
			t.Errorf("%s (%s) belongs to a rollout", id, r.Type)
		}
	}
}
