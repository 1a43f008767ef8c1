# SPDX-License-Identifier: Apache-2.0

"""Serves ministack 1.5.33 with repairs made in memory at start; no file of the package is changed.

ministack is the second AWS backend: with AUTH=true it enforces IAM, which LocalStack's community edition does
not. servers/ministack.sh sets its environment.

The repairs:
1. One lock around everything that changes a queue's list of messages. Handlers run on several threads and
   replace that list as a whole, so of two concurrent deletes one was lost.
2. Event source mappings take batches of the size they ask for, not of at most 10.
3. They wait for MaximumBatchingWindowInSeconds. Unlike on AWS the messages stay visible meanwhile.
4. A batch call (DeleteMessageBatch) is authorised by the single action (sqs:DeleteMessage): AWS has no batch
   actions in IAM.
5. A log group is named with ":*" where its actions are authorised, but for its tags. AWS: "Use the second version,
   with the trailing :*, to refer to the ARN when specifying permissions in IAM policies for all other API actions"
   (docs.aws.amazon.com/AmazonCloudWatch/latest/logs/iam-access-control-overview-cwl).
6. A request to DynamoDB carries dynamodb:LeadingKeys, the partition keys of its items. Without it a condition
   ForAllValues on these keys holds for every item, and a role writes rows that AWS denies it.
7. An alias with AdditionalVersionWeights sends each invocation to one of its versions, by their weights. ministack
   stores the weights and invokes only the first version.

It also writes what each role may do and each call that it makes into the file LULL_CALLS, which rights.py compares.
"""

import functools
import importlib.metadata
import inspect
import json
import os
import random
import sys
import threading
import time

WRITTEN_FOR = "1.5.33"

# The largest batch that Lambda takes from a standard queue.
LARGEST_BATCH = 10_000


def lock_queues(sqs) -> threading.RLock:
    lock = threading.RLock()  # re-entrant: a batch handler calls the single ones

    def locked(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            with lock:
                return function(*args, **kwargs)

        return call

    sqs._queues_lock = lock  # the event source helpers take it by this name
    for name in ("_collect_msgs", "_dlq_sweep", "_expire_retained", "_refresh_counts"):
        setattr(sqs, name, locked(getattr(sqs, name)))
    # ReceiveMessage is a coroutine that must not hold a lock over its long poll; it changes messages through
    # the helpers above only.
    for action, handler in sqs._HANDLERS.items():
        if not inspect.iscoroutinefunction(handler):
            sqs._HANDLERS[action] = locked(handler)
    return lock


def batch_as_asked(sqs, functions, lock) -> None:
    waiting_since: dict[str, float] = {}  # queue URL -> when its first visible message was seen

    def window_seconds(queue_arn: str) -> float:
        for _, _, mapping in functions._iter_all_esms():
            if mapping.get("EventSourceArn") == queue_arn:
                return mapping.get("MaximumBatchingWindowInSeconds") or 0
        return 0

    def receive(url: str, asked) -> list[dict]:
        with lock:
            queue = sqs._get_q(url)
            size = min(int(asked or 1), 10 if queue["is_fifo"] else LARGEST_BATCH)
            sqs._expire_retained(queue)
            sqs._dlq_sweep(queue)
            window = window_seconds(queue["attributes"].get("QueueArn"))
            if window and not queue["is_fifo"]:
                now = time.time()
                visible = sum(1 for message in queue["messages"] if message["visible_at"] <= now)
                if visible == 0:
                    waiting_since.pop(url, None)
                    return []
                if visible < size and now - waiting_since.setdefault(url, now) < window:
                    return []
            waiting_since.pop(url, None)
            return sqs._collect_msgs(queue, size, int(queue["attributes"].get("VisibilityTimeout", "30")))

    sqs._receive_messages_for_esm = receive


def authorise_as_aws_names_it(evaluator) -> None:
    original = evaluator.enforce
    signature = inspect.signature(original)

    @functools.wraps(original)
    def enforce(*args, **kwargs):
        call = signature.bind(*args, **kwargs)
        action, resource = call.arguments["iam_action"], call.arguments.get("resource_arn", "")
        if action.startswith("sqs:"):
            call.arguments["iam_action"] = action.removesuffix("Batch")
        if action.startswith("logs:") and "Tag" not in action and ":log-group:" in resource and resource.count(":") == 6:
            call.arguments["resource_arn"] = resource + ":*"
        return original(*call.args, **call.kwargs)

    evaluator.enforce = enforce


def leading_keys(body: bytes) -> list[str]:
    """The partition keys that a request names. The tables of these tests have no sort key."""
    try:
        request = json.loads(body or b"{}")
    except ValueError:
        return []
    tables = request.get("RequestItems") or {}
    keys = [key for table in tables.values() if isinstance(table, dict) for key in table.get("Keys", [])]
    if "Key" in request:
        keys.append(request["Key"])
    return [value["S"] for key in keys for value in key.values() if "S" in value]


def name_leading_keys(actions) -> None:
    original = actions.dynamodb_service_context

    @functools.wraps(original)
    def context(body: bytes) -> dict:
        keys = leading_keys(body)
        return {**original(body), **({"dynamodb:LeadingKeys": keys} if keys else {})}

    actions.dynamodb_service_context = context


class WeightedAlias(dict):
    """An alias whose version is drawn anew each time that an invocation asks for it. As JSON it is the alias."""

    def get(self, key, default=None):
        if key == "FunctionVersion":
            weights = (super().get("RoutingConfig") or {}).get("AdditionalVersionWeights") or {}
            for version, weight in weights.items():
                if random.random() < weight:
                    return version
        return super().get(key, default)


def draw_versions(functions) -> None:
    original = functions._update_alias

    @functools.wraps(original)
    def update(func_name, alias_name, data):
        answer = original(func_name, alias_name, data)
        function = functions._functions.get(func_name) or {}
        alias = function.get("aliases", {}).get(alias_name)
        if alias is not None:
            function["aliases"][alias_name] = WeightedAlias(alias)
        return answer

    functions._update_alias = update


def record_calls(evaluator, path: str) -> None:
    """Writes each right of a role that makes a call, and each call with its outcome, once each."""
    original, seen, lock = evaluator.evaluate, set(), threading.Lock()
    file = open(path, "w", encoding="utf-8", buffering=1)

    @functools.wraps(original)
    def evaluate(ctx, policies, *limits):
        result = original(ctx, policies, *limits)
        role = ctx.principal_arn.split("/")[1] if ctx.principal_type == "AssumedRole" else ""
        lines = {("call", role, ctx.action, ctx.resource_arn, result.decision)} | {
            ("right", role, statement.sid, action, resource)
            for statements in policies for statement in statements
            for action in statement.actions for resource in statement.resources
        }
        with lock:
            for line in sorted(lines - seen) if role else ():
                file.write("\t".join(line) + "\n")
            seen.update(lines)
        return result

    evaluator.evaluate = evaluate


def main() -> None:
    version = importlib.metadata.version("ministack")
    if version != WRITTEN_FOR:
        sys.exit(f"repairs were written for ministack {WRITTEN_FOR}, not {version}")

    from ministack.core import iam_actions, iam_evaluator
    from ministack.services import lambda_svc, sqs

    lock = lock_queues(sqs)
    batch_as_asked(sqs, lambda_svc, lock)
    draw_versions(lambda_svc)
    authorise_as_aws_names_it(iam_evaluator)
    name_leading_keys(iam_actions)
    calls = os.environ.pop("LULL_CALLS", "")  # functions inherit the environment
    if calls:
        record_calls(iam_evaluator, calls)

    from ministack import app

    app.main()


main()
