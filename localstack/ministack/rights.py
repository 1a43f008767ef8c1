# SPDX-License-Identifier: Apache-2.0

"""Holds the calls that roles made on ministack against their rights.

    rights.py FILE...   what serve.py wrote, of one run or of its two tries

A right is an action on one resource of a statement. A right that no call used is a fault, unless UNUSED says why: then
it is printed with the reason. A call of a function that no right covers is a fault too. Tests take rights away, so a
call that was denied is none if the role had the right at another time, whatever its condition says. Commands are run
under roles that deny them, so calls of operators are not judged.
"""

import collections
import fnmatch
import pathlib
import re
import sys

# Rights that no call uses: a pattern of "ROLE STATEMENT ACTION RESOURCE", and the reason.
UNUSED = {
    r"^(Receive|Dlq) Consume sqs:(DeleteMessage|GetQueueAttributes|ReceiveMessage) ":
        "the event source mapping makes the call, and ministack checks no calls of its own",
    r" Log logs:": "Lambda makes the call, and ministack checks no calls of its own",
    r"^(\w+ MissReferences|Index List|operator List) s3:ListBucket ":
        "ministack tells every caller that an object is missing",
    r"^(Receive Consume|Index HoldAndDelete) sqs:(ChangeMessageVisibility|SendMessage) .*-bulk$|"
    r"^(Dlq Return|Prune Enqueue|operator Redrive) sqs:SendMessage .*-bulk$":
        "no test under IAM makes the call for a message of the bulk lane; it does for one of the live lane",
    r"^publisher Publish sqs:SendMessage .*-bulk$":
        "a resync sends to the bulk lane, under a role with the rights of publisher and of reader",
    r" states:StartExecution .*-standard$": "the flights of the stack are Express executions",
    r"^Prune Collect s3:(DeleteObject|GetObject) .*/(dead|flights)/":
        "no test under IAM has orphaned flights, or dead letters that are old",
    r"^operator (FindQueues sqs:GetQueueAttributes|FitTable|ReadLogs|ReadMetrics) ?":
        "an operator has all rights of a reader, and commands that read are run as reader",
    r"^operator RescueFlights s3:DeleteObject ": "a rescue deletes the new manifest when its flight does not start",
    r"^reader ReadMetrics ": "the console reads metrics, and no test under IAM opens it",
}

PLANTED = """right\tx-SinksearchReceiveRole1\tUsed\tsqs:SendMessage\tarn:aws:sqs:::live
right\tx-SinksearchReceiveRole1\tIdle\tsqs:SendMessage\tarn:aws:sqs:::dead
call\tx-SinksearchReceiveRole1\tsqs:SendMessage\tarn:aws:sqs:::live\tAllow
call\tx-SinksearchReceiveRole1\tsqs:DeleteMessage\tarn:aws:sqs:::live\tImplicitDeny"""


def name_of(role):
    """Receive for lull-iam-LullSinksearchReceiveRole58F42ABD, reader for lull-iam-reader-us-east-1, or None.

    Of the stack lull-works, only the roles count that other stacks lack.
    """
    found = re.search(r"Lull(Job|Searchable)Role", role)
    if role.startswith("lull-works-"):
        return found and found.group(1)
    found = found or re.search(r"Sink\w+?(Receive|Index|Prune|Dlq)Role", role)
    found = found or re.fullmatch(r"\w+-\w+-(publisher|reader|operator)-[a-z]+-[a-z]+-\d", role)
    return found and found.group(1)


def covers(right, call):
    """Whether a right covers a call of its role; a pattern of a right has no other wildcards than *."""
    role, _, action, resource = right
    return (role, action.lower()) == (call[0], call[1].lower()) and fnmatch.fnmatchcase(call[2], resource)


def compare(lines):
    """The rights and the calls of the stack's roles, the rights that no call used, and the calls without a right."""
    rights, calls = set(), set()
    for line in lines:
        kind, role, *rest = line.split("\t")
        if kind == "call" and name_of(role):
            calls.add((name_of(role), *rest))
        # A statement of a queue's policy is no right of the role that sends.
        elif name_of(role) and not rest[0].startswith("Upstream"):
            rights.add((name_of(role), *rest))
    idle = sorted(right for right in rights if not any(covers(right, call) for call in calls))
    lacking = sorted(
        call for call in calls
        if call[3] != "Allow" and call[0][0].isupper() and not any(covers(right, call) for right in rights)
    )
    return rights, calls, idle, lacking


def main(paths):
    _, _, idle, lacking = compare(PLANTED.splitlines())
    if [right[1] for right in idle] != ["Idle"] or [call[1] for call in lacking] != ["sqs:DeleteMessage"]:
        raise SystemExit(f"the planted faults are not found: {idle}, {lacking}")
    lines = [line for path in paths for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]
    rights, calls, idle, lacking = compare(lines)
    faults = [f"{role} calls {action} on {resource} without a right" for role, action, resource, _ in lacking]
    excused = collections.defaultdict(list)
    for right in idle:
        reason = next((pattern for pattern in UNUSED if re.search(pattern, " ".join(right))), None)
        if reason:
            excused[reason].append(" ".join(right))
        else:
            faults.append("no call uses " + " ".join(right))
    roles = {right[0] for right in rights}
    if len(roles) < 9:
        faults.append(f"only these roles made calls: {sorted(roles)}")
    print(f"rights: {len(rights)} of {len(roles)} roles, {len(calls)} different calls, {len(idle)} rights unused")
    for reason, unused in excused.items():
        print(f"  {UNUSED[reason]}:", *unused, sep="\n    ")
    for pattern in UNUSED.keys() - excused.keys():
        print("  every right was used of which UNUSED says:", UNUSED[pattern])
    for fault in faults:
        print("  FAULT:", fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
