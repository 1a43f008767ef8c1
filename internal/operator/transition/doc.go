// SPDX-License-Identifier: Apache-2.0

// Package transition predicts what a deploy does to a stack: which resources it creates, changes,
// replaces and removes, and what an operator has to do first.
//
// Templates compares two CloudFormation templates. It uses AWS's resource schemas, which schemas.py
// writes to schemas.json. Settings compares two settings files by a table of rules, without CDK. A
// test of package infra checks that each rule agrees with the templates.
package transition
