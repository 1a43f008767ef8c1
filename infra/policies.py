#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
"""Holds the roles of CloudFormation templates to AWS's service authorization reference.

    policies.py TEMPLATE...

AWS takes a policy whose action never works on its resource, and the role is then denied at run time. parliament knows
which resources and conditions each action takes, and finds an action without a resource. Here a resource without an
action is found too. The policies of queues and buckets are held to the reference like those of roles. A fault is
printed on a line of its own; any fault exits 1.
"""

import json
import re
import sys

import parliament
from parliament.statement import get_arn_format, get_privilege_info

ACCOUNT, REGION = "111122223333", "eu-west-1"
PSEUDO = {
    "AWS::AccountId": ACCOUNT, "AWS::Region": REGION, "AWS::Partition": "aws", "AWS::StackName": "stack",
    "AWS::URLSuffix": "amazonaws.com",
}
# The ARN of a resource of each type, with its logical id for a name.
ARNS = {
    "AWS::DynamoDB::GlobalTable": "arn:aws:dynamodb:{at}:table/{id}",
    "AWS::Events::Rule": "arn:aws:events:{at}:rule/{id}",
    "AWS::IAM::Role": "arn:aws:iam::%s:role/{id}" % ACCOUNT,
    "AWS::KMS::Key": "arn:aws:kms:{at}:key/{id}",
    "AWS::Lambda::Alias": "arn:aws:lambda:{at}:function:{id}:current",
    "AWS::Lambda::Function": "arn:aws:lambda:{at}:function:{id}",
    "AWS::Logs::LogGroup": "arn:aws:logs:{at}:log-group:{id}:*",
    "AWS::S3::Bucket": "arn:aws:s3:::{id}",
    "AWS::SQS::Queue": "arn:aws:sqs:{at}:{id}",
    "AWS::StepFunctions::StateMachine": "arn:aws:states:{at}:stateMachine:{id}",
}
# Of the resources above, those that Ref names by their ARN.
BY_ARN = {"AWS::Lambda::Alias", "AWS::StepFunctions::StateMachine"}
# The types of resources that are a policy.
POLICIES = {"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy"}
# AWS makes network interfaces, and names them then: Lambda and EventBridge Pipes ask for these actions on everything.
STARS = {
    "ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
    "ec2:UnassignPrivateIpAddresses",
}
# Conditions that AWS took after parliament's copy of the reference was made, each with its page.
NEWER = {
    # https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html: October 2025
    ("lambda:InvokeFunction", "lambda:InvokedViaFunctionUrl", "Bool"),
}
# parliament takes a colon for the end of a part of an ARN, and the label of a stream of DynamoDB is a time.
LABEL = re.compile(r"(:table/[^/]+/stream/)\S+")
QUEUE, TABLE = "arn:aws:sqs:eu-west-1:111122223333:live", "arn:aws:dynamodb:eu-west-1:111122223333:table/shards"
# What must be found, each by its own fault. The first is a statement that lull once had.
WRONG = {
    "RESOURCE_MISMATCH": {
        "Action": "kafka:GetBootstrapBrokers", "Resource": "arn:aws:kafka:eu-west-1:111122223333:cluster/content/1",
    },
    "RESOURCE_WITHOUT_ACTION": {"Action": "sqs:SendMessage", "Resource": [QUEUE, TABLE]},
    "UNKNOWN_ACTION": {"Action": "sqs:SendMessages", "Resource": QUEUE},
    "UNKNOWN_PREFIX": {"Action": "sqss:SendMessage", "Resource": QUEUE},
    "UNKNOWN_CONDITION_FOR_ACTION": {
        "Action": "dynamodb:Scan", "Resource": TABLE,
        "Condition": {"ForAllValues:StringLike": {"dynamodb:LeadingKey": "content#*"}},
    },
    "RESOURCE_STAR": {"Action": "sqs:SendMessage", "Resource": "*"},
}


def learn(action, condition, kind):
    """Adds a condition to what the reference lists for an action."""
    service, name = action.split(":")
    for entry in parliament.iam_definition:
        if entry["prefix"] != service:
            continue
        entry["conditions"].append({"condition": condition, "description": "", "type": kind})
        for privilege in entry["privileges"]:
            if privilege["privilege"] == name:
                for of in privilege["resource_types"]:
                    of["condition_keys"].append(condition)


def listed(value):
    return value if isinstance(value, list) else [value]


def takes(action, resource):
    """Whether the reference lists a type of resource for the action to which the resource belongs."""
    service, name = action.split(":")
    privilege = get_privilege_info(service, name)
    kinds = [kind["resource_type"] for kind in privilege["resource_types"] if kind["resource_type"]]
    return any(
        parliament.is_arn_match(kind, get_arn_format(kind, privilege["service_resources"]), resource) for kind in kinds
    )


def findings(statement):
    """Pairs of a fault and its details."""
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    found = [
        (finding.issue, finding.detail) for finding in parliament.analyze_policy_string(json.dumps(policy)).findings
        if not (finding.issue == "RESOURCE_STAR" and STARS.issuperset(finding.detail)) and
        # s3:* is denied below a version of TLS: two of its actions know no versions, and are not denied.
        not (finding.issue == "UNKNOWN_CONDITION_FOR_ACTION" and statement["Effect"] == "Deny")
    ]
    if not found and statement["Effect"] == "Allow":
        found = [
            ("RESOURCE_WITHOUT_ACTION", resource) for resource in listed(statement["Resource"])
            if resource != "*" and not any(takes(action, resource) for action in listed(statement["Action"]))
        ]
    return found


class Template:
    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as file:
            self.content = json.load(file)
        self.resources = self.content.get("Resources", {})

    def arn(self, name):
        kind = self.resources[name]["Type"]
        if kind not in ARNS:
            raise SystemExit(f"{self.path}: no ARN is known for {kind}: add it to ARNS in {sys.argv[0]}")
        return ARNS[kind].format(at=f"{REGION}:{ACCOUNT}", id=name)

    def text(self, value):
        """The text of a value, with CloudFormation's functions carried out."""
        if not isinstance(value, dict):
            return value
        (function, of), = value.items()
        if function == "Ref":
            if of in PSEUDO:
                return PSEUDO[of]
            if of in self.resources:
                return self.arn(of) if self.resources[of]["Type"] in BY_ARN else of
            return "parameter"
        if function == "Fn::GetAtt":
            name, attribute = of if isinstance(of, list) else of.split(".", 1)
            if attribute == "StreamArn":
                return self.arn(name) + "/stream/2026-11-20T00:00:00.000"
            if attribute == "Arn":
                return self.arn(name)
            return name
        if function == "Fn::Join":
            return of[0].join(self.text(part) for part in of[1])
        if function == "Fn::If":
            return self.text(of[1])
        raise SystemExit(f"{self.path}: {function} is not known: add it to {sys.argv[0]}")

    def resolved(self, value):
        """A policy with plain texts."""
        if isinstance(value, list):
            return [self.resolved(item) for item in value if item != {"Ref": "AWS::NoValue"}]
        if isinstance(value, dict):
            if len(value) == 1 and (next(iter(value)) == "Ref" or next(iter(value)).startswith("Fn::")):
                return self.resolved(self.text(value))
            return {key: self.resolved(item) for key, item in value.items()}
        if isinstance(value, float):
            return str(int(value))  # parliament takes a number with a fraction, such as a version of TLS, for none
        return LABEL.sub(r"\1label", value) if isinstance(value, str) else value

    def policies(self):
        """The policies: a pair of the role, queue or bucket that has one, and the document."""
        for name, resource in sorted(self.resources.items()):
            properties = resource.get("Properties", {})
            if resource["Type"] in POLICIES:
                yield name, properties["PolicyDocument"]
            for policy in properties.get("Policies", []) if resource["Type"] == "AWS::IAM::Role" else []:
                yield name, policy["PolicyDocument"]


def main(paths):
    for condition in NEWER:
        learn(*condition)
    for fault, statement in WRONG.items():
        found = findings({"Sid": "Wrong", "Effect": "Allow", **statement})
        if [issue for issue, _ in found] != [fault]:
            raise SystemExit(f"{fault} is what is wrong with {statement}, and it finds {found}")
    faults, statements = [], 0
    for path in paths:
        template = Template(path)
        for role, document in template.policies():
            document = template.resolved(document)
            statements += len(document["Statement"])
            for statement in document["Statement"]:
                for fault, detail in findings(statement):
                    faults.append(f"{path}: {role}: {statement.get('Sid', 'a statement')}: {fault} {detail}")
    print("\n".join(faults) or f"{statements} statements of {len(paths)} templates: no fault")
    if not statements:
        raise SystemExit("there is no policy: are these templates?")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
