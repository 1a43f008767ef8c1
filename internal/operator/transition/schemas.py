#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
"""Writes schemas.json: what CloudFormation's resource schemas say of the types that lull deploys.

The schemas are AWS's own, as the Python package cfn-lint ships them:

    pip download --no-deps cfn-lint==1.58.0 && python3 -m zipfile -e cfn_lint-*.whl x
    ./schemas.py x/cfnlint/data/schemas 'cfn-lint 1.58.0' > schemas.json
"""
import json
import sys

TYPES = """AWS::CloudWatch::Alarm AWS::CloudWatch::CompositeAlarm AWS::CloudWatch::Dashboard
AWS::CodeDeploy::Application AWS::CodeDeploy::DeploymentGroup
AWS::DynamoDB::GlobalTable AWS::Events::Rule AWS::IAM::ManagedPolicy AWS::IAM::Policy AWS::IAM::Role
AWS::Lambda::Alias AWS::Lambda::EventInvokeConfig AWS::Lambda::EventSourceMapping AWS::Lambda::Function
AWS::Lambda::Permission AWS::Lambda::Url AWS::Lambda::Version AWS::Logs::LogGroup AWS::Logs::MetricFilter AWS::Pipes::Pipe
AWS::S3::Bucket AWS::S3::BucketPolicy AWS::SNS::Subscription AWS::SNS::Topic AWS::SQS::Queue AWS::SQS::QueuePolicy
AWS::StepFunctions::StateMachine AWS::Synthetics::Canary""".split()

# What tells one resource from another where its identifier is made by the service: a second one with
# the same values is refused, or is the first one.
TELLS_APART = {
    "AWS::SQS::Queue": ["QueueName"],
    "AWS::SNS::Subscription": ["Endpoint", "Protocol", "TopicArn"],
    "AWS::SNS::Topic": ["TopicName"],
    "AWS::Events::Rule": ["EventBusName", "Name"],
    "AWS::Lambda::EventSourceMapping": ["EventSourceArn", "FunctionName"],
    "AWS::Lambda::Alias": ["FunctionName", "Name"],
    "AWS::StepFunctions::StateMachine": ["StateMachineName"],
    "AWS::IAM::ManagedPolicy": ["ManagedPolicyName"],
    "AWS::Lambda::Permission": [],
}


def names(schema, key):
    """Top-level properties that a list of the schema names."""
    return sorted({path.split("/")[2] for path in schema.get(key, []) if path.count("/") == 2})


def main(folder, version):
    of = json.load(open(folder + "/providers/us-east-1.json"))
    date = json.load(open(folder + "/version.json"))["schema_date"][:10]
    types = {}
    for name in TYPES:
        schema = json.load(open(f"{folder}/resources/{of[name]}.json"))
        identifier, read_only = names(schema, "primaryIdentifier"), names(schema, "readOnlyProperties")
        types[name] = {
            "createOnly": names(schema, "createOnlyProperties"),
            "sometimesCreateOnly": names(schema, "conditionalCreateOnlyProperties"),
            "identifier": identifier,
            "readOnly": read_only,
            "apart": TELLS_APART.get(name, [p for p in identifier if p not in read_only]),
            "importable": {"read", "list"} <= set(schema.get("handlers", {})),
        }
    json.dump({"source": f"{version}, schemas of {date}", "types": types}, sys.stdout, indent=1)
    print()


main(*sys.argv[1:])
