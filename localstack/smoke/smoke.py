"""The smoke check. usage: smoke.py localstack|ministack|cdk WORK   (run it through smoke.sh)

WORK holds function/bootstrap and, for cdk, outputs.json. Everything it makes has a name of this run, so it can
run again on the same server.
"""

import base64
import concurrent.futures
import io
import json
import os
import pathlib
import sys
import time
import traceback
import urllib.error
import urllib.request
import uuid
import zipfile

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

RUN = uuid.uuid4().hex[:8]
BACKEND, WORK = sys.argv[1], pathlib.Path(sys.argv[2])
ACCOUNT, REGION = "000000000000", os.environ["AWS_REGION"]
CHECKS: dict[str, list] = {"localstack": [], "ministack": [], "cdk": []}


def client(service: str, **credentials):
    # The default attempts of boto3 would hide a server that fails now and then.
    return boto3.client(service, config=Config(retries={"total_max_attempts": 1}, read_timeout=60), **credentials)


def check(*backends: str):
    def register(function):
        for backend in backends:
            CHECKS[backend].append(function)
        return function

    return register


def until(question, seconds: float = 60):
    """Asks until the answer is truthy, and returns it."""
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s")
        time.sleep(0.1)
    return answer


def expect(name: str, got, want) -> None:
    if got != want:
        raise AssertionError(f"{name}: got {got!r}, want {want!r}")


def refused(code: str, call, **arguments) -> dict:
    """The call must fail with this error code; returns the error's response."""
    try:
        call(**arguments)
    except ClientError as error:
        expect("error code", error.response["Error"]["Code"], code)
        return error.response
    raise AssertionError(f"{code} expected, but the call succeeded")


# What several checks share.


def queue(name: str, **attributes) -> tuple[str, str]:
    sqs = client("sqs")
    url = sqs.create_queue(QueueName=f"{name}-{RUN}", Attributes=attributes)["QueueUrl"]
    return url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def receive(url: str, seconds: int = 10) -> str | None:
    """Takes one message and deletes it."""
    sqs = client("sqs")
    found = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=seconds).get("Messages")
    if not found:
        return None
    sqs.delete_message(QueueUrl=url, ReceiptHandle=found[0]["ReceiptHandle"])
    return found[0]["Body"]


def role(name: str, *actions: str) -> str:
    """A role of functions and state machines with these actions on everything."""
    iam = client("iam")
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": ["lambda.amazonaws.com", "states.amazonaws.com"]},
        "Action": "sts:AssumeRole",
    }
    arn = iam.create_role(
        RoleName=f"{name}-{RUN}", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    )["Role"]["Arn"]
    allow = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
    iam.put_role_policy(
        RoleName=f"{name}-{RUN}",
        PolicyName="p",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [allow]}),
    )
    return arn


def code() -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        entry = zipfile.ZipInfo("bootstrap")
        entry.external_attr = 0o755 << 16
        target.writestr(entry, (WORK / "function" / "bootstrap").read_bytes())
    return archive.getvalue()


_deployed: dict[str, str] = {}


def function(name: str, *actions: str, timeout: int = 3) -> str:
    """Deploys the function once under this name."""
    full = f"{name}-{RUN}"
    if name not in _deployed:
        functions = client("lambda")
        functions.create_function(
            FunctionName=full,
            Runtime="provided.al2023",
            Handler="bootstrap",
            Role=role(name, "logs:*", "sqs:*", *actions),
            Code={"ZipFile": code()},
            Timeout=timeout,
            Environment={"Variables": {"SMOKE_SETTING": "a b=c"}},
        )
        functions.get_waiter("function_active_v2").wait(FunctionName=full, WaiterConfig={"Delay": 1})
        _deployed[name] = full
    return full


def call(name: str, **event) -> tuple[dict, str | None, str]:
    """Invokes and returns payload, function error and what it logged."""
    out = client("lambda").invoke(FunctionName=name, Payload=json.dumps(event).encode(), LogType="Tail")
    log = base64.b64decode(out.get("LogResult", "")).decode()
    return json.loads(out["Payload"].read() or b"null"), out.get("FunctionError"), log


def logged(name: str, text: str) -> list[str]:
    """The function's log lines that contain text. LocalStack ignores filter patterns, so nothing is left to them."""
    logs = client("logs")
    try:
        pages = logs.get_paginator("filter_log_events").paginate(logGroupName=f"/aws/lambda/{name}")
        return [event["message"].strip() for page in pages for event in page["events"] if text in event["message"]]
    except logs.exceptions.ResourceNotFoundException:
        return []  # the group appears with the first line


# Lambda.


@check("localstack")
def functions_run_as_processes():
    name = function("fn")
    answer, error, log = call(name, echo="hello")
    expect("function error", error, None)
    expect("environment variable", answer["setting"], "a b=c")
    expect("function name", answer["function"], name)
    expect("echo", answer["echo"], "hello")
    if not 0 < answer["remaining_ms"] <= 3000:
        raise AssertionError(f"remaining time {answer['remaining_ms']} ms of a 3 s timeout")
    if 'smoke: direct call "hello"' not in log:
        raise AssertionError(f"output missing in {log!r}")
    until(lambda: logged(name, 'smoke: direct call "hello"'))
    began = time.perf_counter()
    for _ in range(20):
        call(name)
    return f"{(time.perf_counter() - began) * 50:.0f} ms a call"


@check("localstack")
def functions_fail_and_recover():
    name = function("fn")
    first, _, _ = call(name)
    answer, error, _ = call(name, mode="error")
    expect("after an error", (error, answer["errorMessage"]), ("Unhandled", "asked to fail"))
    same, _, _ = call(name)
    expect("process after an error", same["pid"], first["pid"])

    answer, error, _ = call(name, mode="exit")
    expect("after exit", (error, answer["errorType"]), ("Unhandled", "Runtime.ExitError"))
    second, error, _ = call(name)
    expect("call after exit", error, None)

    began = time.monotonic()
    answer, error, _ = call(name, mode="sleep", millis=30_000)
    took = time.monotonic() - began
    if error is None or "timed out" not in answer["errorMessage"] or not 3 <= took < 10:
        raise AssertionError(f"a timeout of 3 s ended after {took:.1f} s with {answer}")
    if pathlib.Path(f"/proc/{second['pid']}").exists():
        raise AssertionError("the process survived its timeout")
    _, error, _ = call(name)
    expect("call after a timeout", error, None)


@check("localstack", "ministack")
def functions_run_concurrently():
    name = function("fn")
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: call(name, mode="sleep", millis=1000), range(12)))
    took = time.monotonic() - began
    expect("function errors", [error for _, error, _ in answers if error], [])
    expect("processes", len({answer["pid"] for answer, _, _ in answers}), 12)
    if took > 10:
        raise AssertionError(f"12 calls of 1 s took {took:.1f} s")
    return f"12 x 1 s in {took:.1f} s"


@check("localstack", "ministack")
def event_source_mapping_reports_item_failures():
    sqs, functions = client("sqs"), client("lambda")
    name = function("fn")
    dead_url, dead_arn = queue("dead")
    redrive = json.dumps({"deadLetterTargetArn": dead_arn, "maxReceiveCount": 3})
    url, arn = queue("live", VisibilityTimeout="2", RedrivePolicy=redrive)
    # Spacing, digits, escapes and equal keys must survive.
    bodies = ['{ "good": 1.10, "good": "\\u00e9" }', "retry", "poison"]
    mapping = functions.create_event_source_mapping(
        FunctionName=name,
        EventSourceArn=arn,
        BatchSize=100,
        MaximumBatchingWindowInSeconds=1,
        FunctionResponseTypes=["ReportBatchItemFailures"],
    )["UUID"]
    try:
        began = time.monotonic()
        sqs.send_message_batch(
            QueueUrl=url, Entries=[{"Id": str(i), "MessageBody": body} for i, body in enumerate(bodies)]
        )
        expect("dead letter", until(lambda: receive(dead_url, 1)), "poison")
        took = time.monotonic() - began
        counts = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        left = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(counts))["Attributes"]
        expect("messages left", [left[name] for name in counts], ["0", "0"])
        expect("a second dead letter", receive(dead_url, 0), None)
        if BACKEND == "localstack":
            # Quoted as Go quotes: the function prints with %q.
            good = '"{ \\"good\\": 1.10, \\"good\\": \\"\\\\u00e9\\" }"'
            want = [f"smoke: record 1 {good}"]
            want += [f'smoke: record {count} "retry"' for count in (1, 2)]
            want += [f'smoke: record {count} "poison"' for count in (1, 2, 3)]
            until(lambda: len(logged(name, "smoke: record")) >= len(want))
            expect("records", sorted(logged(name, "smoke: record")), sorted(want))
        return f"dead after 3 receives in {took:.1f} s"
    finally:
        functions.delete_event_source_mapping(UUID=mapping)


@check("localstack", "ministack")
def event_source_mapping_takes_large_batches():
    sqs, functions = client("sqs"), client("lambda")
    url, arn = queue("bulk", VisibilityTimeout="60")
    for start in range(0, 300, 10):
        sqs.send_message_batch(
            QueueUrl=url, Entries=[{"Id": str(i), "MessageBody": f"bulk {start + i}"} for i in range(10)]
        )
    mapping = functions.create_event_source_mapping(
        FunctionName=function("fn"), EventSourceArn=arn, BatchSize=100, MaximumBatchingWindowInSeconds=1
    )["UUID"]
    try:
        began = time.monotonic()
        counts = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")

        def left() -> int:
            attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(counts))["Attributes"]
            return sum(int(attributes[name]) for name in counts)

        until(lambda: left() == 0)
        return f"300 messages in {time.monotonic() - began:.1f} s"
    finally:
        functions.delete_event_source_mapping(UUID=mapping)


# DynamoDB, S3, messaging.


@check("localstack", "ministack")
def conditional_update_returns_the_old_item():
    dynamodb = client("dynamodb")
    table = f"rows-{RUN}"
    dynamodb.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
    )
    dynamodb.get_waiter("table_exists").wait(TableName=table, WaiterConfig={"Delay": 1})
    update = {
        "TableName": table,
        "Key": {"k": {"S": "doc"}},
        "UpdateExpression": "SET v = :v ADD n :one",
        "ConditionExpression": "attribute_not_exists(v) OR v < :v",
        "ExpressionAttributeValues": {":v": {"S": "2"}, ":one": {"N": "1"}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    dynamodb.update_item(**update)
    response = refused("ConditionalCheckFailedException", dynamodb.update_item, **update)
    expect("old item", response.get("Item"), {"k": {"S": "doc"}, "v": {"S": "2"}, "n": {"N": "1"}})

    def claim(number: int) -> int:
        try:
            dynamodb.update_item(
                TableName=table,
                Key={"k": {"S": "contended"}},
                UpdateExpression="SET claimant = :me",
                ConditionExpression="attribute_not_exists(claimant)",
                ExpressionAttributeValues={":me": {"N": str(number)}},
            )
            return 1
        except dynamodb.exceptions.ConditionalCheckFailedException:
            return 0

    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        expect("claims that won", sum(pool.map(claim, range(40))), 1)


@check("localstack", "ministack")
def s3_writes_only_when_absent():
    s3 = client("s3")
    bucket = f"flights-{RUN}"
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="k", Body=b"first", IfNoneMatch="*")
    refused("PreconditionFailed", s3.put_object, Bucket=bucket, Key="k", Body=b"second", IfNoneMatch="*")
    expect("body", s3.get_object(Bucket=bucket, Key="k")["Body"].read(), b"first")


@check("localstack", "ministack")
def topics_and_buses_reach_queues():
    sqs, sns, events = client("sqs"), client("sns"), client("events")
    url, arn = queue("upstream")
    statement = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": arn}
    sqs.set_queue_attributes(
        QueueUrl=url, Attributes={"Policy": json.dumps({"Version": "2012-10-17", "Statement": [statement]})}
    )

    topic = sns.create_topic(Name=f"upstream-{RUN}")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    sns.publish(TopicArn=topic, Message="by topic")
    expect("from SNS", json.loads(until(lambda: receive(url, 1)))["Message"], "by topic")

    events.put_rule(Name=f"upstream-{RUN}", EventPattern=json.dumps({"source": [f"cms.{RUN}"]}))
    events.put_targets(Rule=f"upstream-{RUN}", Targets=[{"Id": "q", "Arn": arn}])
    events.put_events(Entries=[{"Source": f"cms.{RUN}", "DetailType": "published", "Detail": '{"by":"bus"}'}])
    expect("from EventBridge", json.loads(until(lambda: receive(url, 1)))["detail"], {"by": "bus"})


@check("localstack")
def secrets_keys_and_parameters():
    secret = client("secretsmanager").create_secret(Name=f"sink-{RUN}", SecretString="s")["ARN"]
    expect("secret", client("secretsmanager").get_secret_value(SecretId=secret)["SecretString"], "s")
    key = client("kms").create_key()["KeyMetadata"]["KeyId"]
    sealed = client("kms").encrypt(KeyId=key, Plaintext=b"p")["CiphertextBlob"]
    expect("decrypted", client("kms").decrypt(KeyId=key, CiphertextBlob=sealed)["Plaintext"], b"p")
    client("ssm").put_parameter(Name=f"/smoke/{RUN}", Value="v", Type="String")
    expect("parameter", client("ssm").get_parameter(Name=f"/smoke/{RUN}")["Parameter"]["Value"], "v")
    client("cloudwatch").put_metric_data(Namespace="smoke", MetricData=[{"MetricName": "m", "Value": 1}])
    expect("caller", client("sts").get_caller_identity()["Account"], ACCOUNT)


# Step Functions.


def machine(kind: str, out_url: str) -> str:
    """Waits until a timestamp, invokes the function and sends its echo to a queue: Express has no output to read."""
    task = {
        "QueryLanguage": "JSONata",
        "StartAt": "Wait",
        "States": {
            "Wait": {"Type": "Wait", "Timestamp": "{% $states.input.at %}", "Next": "Invoke"},
            "Invoke": {
                "Type": "Task",
                "Resource": "arn:aws:states:::lambda:invoke",
                "Arguments": {"FunctionName": function("fn"), "Payload": {"echo": "{% $states.input.tag %}"}},
                "Output": {"echo": "{% $states.result.Payload.echo %}"},
                "Next": "Tell",
            },
            "Tell": {
                "Type": "Task",
                "Resource": "arn:aws:states:::sqs:sendMessage",
                "Arguments": {"QueueUrl": out_url, "MessageBody": "{% $states.input.echo %}"},
                "End": True,
            },
        },
    }
    return client("stepfunctions").create_state_machine(
        name=f"flight-{kind.lower()}-{RUN}",
        definition=json.dumps(task),
        roleArn=role(f"sfn-{kind.lower()}", "lambda:InvokeFunction", "sqs:SendMessage"),
        type=kind,
    )["stateMachineArn"]


def run_machine(kind: str) -> str:
    url, _ = queue(f"out-{kind.lower()}")
    arn = machine(kind, url)
    began = time.time()
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began + 5))
    client("stepfunctions").start_execution(
        stateMachineArn=arn, name=f"x-{RUN}", input=json.dumps({"at": at, "tag": f"from {kind}"})
    )
    expect("message", until(lambda: receive(url, 1)), f"from {kind}")
    waited = time.time() - began
    # LocalStack's Wait ends up to two seconds early (README.md).
    if not 2 <= waited < 30:
        raise AssertionError(f"a wait of 4 to 5 s took {waited:.1f} s")
    return f"waited {waited:.1f} s of 4 to 5"


@check("localstack", "ministack")
def express_executions_wait_and_invoke():
    return run_machine("EXPRESS")


@check("localstack", "ministack")
def standard_executions_wait_and_invoke():
    return run_machine("STANDARD")


# OpenSearch.


def search(method: str, path: str, body: dict | None = None) -> int:
    request = urllib.request.Request(
        f"{os.environ['OPENSEARCH_URL']}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


@check("localstack")
def opensearch_keeps_external_versions():
    index = f"smoke-{RUN}"
    expect("create", search("PUT", f"/{index}", {"settings": {"number_of_replicas": 0}}), 200)
    document = f"/{index}/_doc/1"
    steps = [
        ("PUT", "version=5&version_type=external", 201),
        ("PUT", "version=5&version_type=external", 409),
        ("PUT", "version=5&version_type=external_gte", 200),
        ("PUT", "version=4&version_type=external_gte", 409),
        ("DELETE", "version=4&version_type=external_gte", 409),
        ("DELETE", "version=7&version_type=external_gte", 200),
        ("PUT", "version=6&version_type=external_gte", 409),  # the delete is still remembered
        ("PUT", "version=8&version_type=external_gte", 201),
    ]
    for method, query, want in steps:
        expect(f"{method} {query}", search(method, f"{document}?{query}", {"t": 1} if method == "PUT" else None), want)
    expect("clean up", search("DELETE", f"/{index}"), 200)


# Both.


@check("localstack", "ministack")
def everything_listens_on_loopback():
    import psutil

    found = 0
    for process in psutil.process_iter():
        try:
            if not process.environ().get("LULL_E2E_SERVER", "").startswith(os.environ["LULL_E2E_RUN"] + "/"):
                continue
            for connection in process.net_connections(kind="inet"):
                if connection.status == psutil.CONN_LISTEN:
                    found += 1
                    if connection.laddr.ip not in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
                        raise AssertionError(
                            f"{process.name()} listens on {connection.laddr.ip}:{connection.laddr.port}"
                        )
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    if not found:
        return "no server process found here: run in containers"
    return f"{found} sockets"


@check("ministack")
def iam_is_enforced():
    iam, sts = client("iam"), client("sts")
    arn = role("narrow", "sqs:SendMessage", "sqs:DeleteMessage")
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    iam.update_assume_role_policy(
        RoleName=f"narrow-{RUN}", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    )
    keys = sts.assume_role(RoleArn=arn, RoleSessionName="smoke")["Credentials"]
    narrow = client(
        "sqs",
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys["SessionToken"],
    )
    url, _ = queue("narrow")
    narrow.send_message_batch(QueueUrl=url, Entries=[{"Id": "1", "MessageBody": "m"}])
    handle = client("sqs").receive_message(QueueUrl=url)["Messages"][0]["ReceiptHandle"]
    refused("AccessDenied", narrow.change_message_visibility, QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
    out = narrow.delete_message_batch(QueueUrl=url, Entries=[{"Id": "1", "ReceiptHandle": handle}])
    expect("deleted", len(out.get("Successful", [])), 1)


# What cdk deploy made.


@check("cdk")
def the_deployed_stack_works():
    outputs = json.loads((WORK / "outputs.json").read_text())["LullSmoke"]
    answer, error, _ = call(outputs["Function"], echo="deployed")
    expect("function error", error, None)
    expect("echo", answer["echo"], "deployed")
    expect("reference in the environment", answer["setting"], outputs["Queue"])
    sqs = client("sqs")
    sqs.send_message(QueueUrl=outputs["Queue"], MessageBody="through the stack")
    counts = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    until(
        lambda: all(
            sqs.get_queue_attributes(QueueUrl=outputs["Queue"], AttributeNames=list(counts))["Attributes"][name] == "0"
            for name in counts
        )
    )
    until(lambda: logged(outputs["Function"], "through the stack"))


def main() -> None:
    failed = 0
    for run in CHECKS[BACKEND]:
        name = run.__name__.replace("_", " ")
        began = time.monotonic()
        try:
            detail = run()
            print(f"ok    {name} ({time.monotonic() - began:.1f} s){': ' + detail if detail else ''}", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAIL  {name} ({time.monotonic() - began:.1f} s): {type(error).__name__}: {error}", flush=True)
            if os.environ.get("SMOKE_TRACE"):
                traceback.print_exc()
    print(f"{BACKEND}: {len(CHECKS[BACKEND]) - failed} of {len(CHECKS[BACKEND])} checks passed")
    sys.exit(1 if failed else 0)


main()
