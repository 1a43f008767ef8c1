// Package transition says what a deploy from one state of a stack to another does: which resources
// are made, changed, replaced, removed, and what has to be done first.
//
// Templates compares two CloudFormation templates by AWS's own resource schemas. They are in
// schemas.json, which schemas.py writes. Settings compares two settings files by a table of rules,
// without CDK. A test of package infra holds each rule to the templates.
package transition
