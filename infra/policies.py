#!/usr/bin/env python3
"""Holds the roles of CloudFormation templates to AWS's service authorization reference.

    policies.py TEMPLATE...

AWS takes a policy whose action never works on its resource, and the role is then denied at run time. parliament knows
which resources each action takes. A fault is printed on a line of its own; any fault exits 1.
"""

import json
import re
import sys

import parliament

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
# AWS makes network interfaces, and names them then: Lambda and EventBridge Pipes ask for these actions on everything.
STARS = {
    "ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
    "ec2:UnassignPrivateIpAddresses",
}
# parliament takes a colon for the end of a part of an ARN, and the label of a stream of DynamoDB is a time.
LABEL = re.compile(r"(:table/[^/]+/stream/)\S+")
# A statement that lull once had: the reference lists no resource for its action.
WRONG = {
    "Sid": "Wrong", "Effect": "Allow", "Action": "kafka:GetBootstrapBrokers",
    "Resource": "arn:aws:kafka:eu-west-1:111122223333:cluster/content/1",
}


def findings(statement):
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    return [
        finding for finding in parliament.analyze_policy_string(json.dumps(policy)).findings
        if finding.issue != "RESOURCE_STAR" or not STARS.issuperset(finding.detail)
    ]


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
        return LABEL.sub(r"\1label", value) if isinstance(value, str) else value

    def policies(self):
        """The identity policies: a pair of the role that has one, and the document."""
        for name, resource in sorted(self.resources.items()):
            properties = resource.get("Properties", {})
            if resource["Type"] in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
                yield name, properties["PolicyDocument"]
            for policy in properties.get("Policies", []) if resource["Type"] == "AWS::IAM::Role" else []:
                yield name, policy["PolicyDocument"]


def main(paths):
    if not findings(WRONG):
        raise SystemExit(f"parliament does not find what is wrong with {WRONG}")
    faults, statements = [], 0
    for path in paths:
        template = Template(path)
        for role, document in template.policies():
            document = template.resolved(document)
            statements += len(document["Statement"])
            for statement in document["Statement"]:
                for finding in findings(statement):
                    what = statement.get("Sid", "a statement")
                    faults.append(f"{path}: {role}: {what}: {finding.issue} {finding.detail}")
    print("\n".join(faults) or f"{statements} statements of {len(paths)} templates: no fault")
    if not statements:
        raise SystemExit("there is no policy: are these templates?")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
