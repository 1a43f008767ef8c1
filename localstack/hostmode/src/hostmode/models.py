# SPDX-License-Identifier: Apache-2.0

"""Holds every request that LocalStack is sent to Amazon's own service models, those of botocore.

LocalStack answers a request that AWS refuses: a member that the operation does not have, a value outside of an enum,
a text or a list that is too long, a number above its bound. SDKs check required members only. Each request becomes a
line in the file LULL_JUDGED: who sent it, its operation, and its faults. A line has no value of a request.

    python -m hostmode.models FILE     prints what the models found, and exits 1 if a request had a fault
"""

import base64
import binascii
import collections
import datetime
import json
import os
import re
import sys
import threading

# A request of this sender has faults on purpose: the models must find them.
PLANTED = "planted"
EXPECTED = {
    "ConsistentRead: is not a boolean", "Kye: is not a member", "ReturnConsumedCapacity: is not in the enum",
    "TableName: has 1025 of 1 to 1024 characters", "has no Key",
}


def faults(shape, value, at=""):
    """What the model of a shape finds wrong with a value. A place names members, never keys or values of a request."""
    check = CHECKS.get(shape.type_name)
    return list(check(shape, value, at)) if check else []


def fault(at, what):
    return f"{at}: {what}" if at else what


def bounds(shape, size, at, unit):
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if (least is not None and size < least) or (most is not None and size > most):
        has = f"has {size} of" if unit else f"is {size}, not"
        yield fault(at, f"{has} {least or 0} to {most if most is not None else 'any'}{unit}")


def structure(shape, value, at):
    if not isinstance(value, dict):
        yield fault(at, "is not a structure")
        return
    for name in shape.required_members:
        if value.get(name) is None:
            yield fault(at, f"has no {name}")
    if getattr(shape, "is_tagged_union", False) and len(value) != 1:
        yield fault(at, f"has {len(value)} members of a union")
    for name, member in value.items():
        place = f"{at}.{name}" if at else name
        if member is None:
            continue  # absent: a parser names every member that a request may have
        if name in shape.members:
            yield from faults(shape.members[name], member, place)
        else:
            yield fault(place, "is not a member")


def array(shape, value, at):
    if not isinstance(value, list):
        yield fault(at, "is not a list")
        return
    yield from bounds(shape, len(value), at, " items")
    for item in value:
        yield from faults(shape.member, item, at + "[]")


def mapping(shape, value, at):
    if not isinstance(value, dict):
        yield fault(at, "is not a map")
        return
    yield from bounds(shape, len(value), at, " entries")
    for key, item in value.items():
        yield from faults(shape.key, key, at + "{key}")
        yield from faults(shape.value, item, at + "{}")


def text(shape, value, at):
    if not isinstance(value, str):
        yield fault(at, "is not a string")
        return
    if shape.enum and value not in shape.enum:
        yield fault(at, "is not in the enum")
    yield from bounds(shape, len(value), at, " characters")
    try:
        if "pattern" in shape.metadata and not re.search(shape.metadata["pattern"], value):
            yield fault(at, "does not match its pattern")
    except re.error:
        pass  # a pattern in the syntax of Java alone


def integer(shape, value, at):
    if isinstance(value, bool) or not isinstance(value, int):
        yield fault(at, "is not an integer")
        return
    yield from bounds(shape, value, at, "")


def number(shape, value, at):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        yield fault(at, "is not a number")
        return
    yield from bounds(shape, value, at, "")


def boolean(shape, value, at):
    if not isinstance(value, bool):
        yield fault(at, "is not a boolean")


def blob(shape, value, at):
    """Base64 in JSON; elsewhere bytes, or a stream, which is not read here."""
    if isinstance(value, str):
        try:
            value = base64.b64decode(value, validate=True)
        except binascii.Error:
            yield fault(at, "is not base64")
            return
    if isinstance(value, bytes):
        yield from bounds(shape, len(value), at, " bytes")


def timestamp(shape, value, at):
    if isinstance(value, bool) or not isinstance(value, (int, float, datetime.datetime)):
        yield fault(at, "is not a timestamp")


CHECKS = {
    "structure": structure, "list": array, "map": mapping, "string": text, "character": text, "integer": integer,
    "long": integer, "float": number, "double": number, "boolean": boolean, "blob": blob, "timestamp": timestamp,
}


class Recorder:
    def __init__(self, path):
        self.lock = threading.Lock()
        self.file = open(path, "w", encoding="utf-8", buffering=1)

    def record(self, context, found):
        sender = context.request.headers.get("User-Agent", "").split(" ")[0] or "unknown"
        operation = f"{context.service.service_name}.{context.operation.name}" if context.operation else "unknown"
        with self.lock:
            self.file.write("\t".join([sender, operation, *sorted(set(found))]) + "\n")

    def request(self, _chain, context, _response):
        """A handler of requests: one that comes after the request was parsed."""
        if context.operation is None or context.is_internal_call:
            return
        value, shape = context.service_request or {}, context.operation.input_shape
        if context.service.protocol == "json":
            # As it was sent: a parser drops what it does not know.
            value = json.loads(context.request.data or b"{}")
        self.record(context, faults(shape, value) if shape else [])

    def refused(self, _chain, exception, context, _response):
        """A handler of exceptions: LocalStack's parser refuses what it cannot read, also in requests without JSON.

        A request whose sender has gone is another exception of the parser.
        """
        from localstack.aws.protocol.parser import ProtocolParserError

        if isinstance(exception, ProtocolParserError) and context.service and not context.is_internal_call:
            self.record(context, [f"{context.service.service_name}: {type(exception).__name__}"])


def judge_requests() -> None:
    path = os.environ.get("LULL_JUDGED")
    if not path:
        return
    from localstack.aws import handlers

    recorder = Recorder(path)
    handlers.serve_custom_service_request_handlers.append(recorder.request)
    handlers.serve_custom_exception_handlers.append(recorder.refused)


def main(path):
    operations, found = collections.Counter(), collections.Counter()
    planted = set()
    with open(path, encoding="utf-8") as file:
        for line in file:
            sender, operation, *faulty = line.rstrip("\n").split("\t")
            if sender == PLANTED:
                planted.update(faulty)
                continue
            operations[operation] += 1
            found.update(f"{operation}: {what} ({sender})" for what in faulty)
    print(f"botocore's models: {operations.total()} requests of {len(operations)} operations, {len(found)} faults")
    for what, times in sorted(found.items()):
        print(f"  {times} times: {what}")
    if planted != EXPECTED:
        print(f"  of the planted request they found {sorted(planted)}, want {sorted(EXPECTED)}")
        return 1
    return 1 if found or not operations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
