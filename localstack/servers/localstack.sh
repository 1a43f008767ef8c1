# SPDX-License-Identifier: Apache-2.0

# LocalStack in host mode: a plain Python process, no Docker. Sourced by start.sh.

port=4566 limit=120

# The services that lull's stack and its tests call; others stay off, which keeps memory down.
services=sqs,sns,dynamodb,dynamodbstreams,s3,stepfunctions,lambda,events,scheduler,cloudformation,iam,sts
services=$services,cloudwatch,logs,ssm,kms,secretsmanager

prepare() {
  installed LocalStack "$LULL_E2E/localstack/bin/python"
  installed "DynamoDB Local" "$LULL_E2E/lib/dynamodb-local/2/DynamoDBLocal.jar"
  # State of an earlier run is never reused: every start is an empty account.
  rm -rf "$run/root" "$run/tmp" "$run/home"
  mkdir -p "$run/root/var/lib/localstack" "$run/tmp" "$run/home"
  ln -s "$LULL_E2E/lib" "$run/root/var/lib/localstack/lib"
}

launch() {
  local settings=(
    "$(mark localstack)"
    PATH="$PATH" LANG=C.UTF-8 HOME="$run/home"

    # Wait states compare an absolute timestamp with the local clock as if it were UTC.
    TZ=UTC

    # The repairs and the two plugins of hostmode/ (see there).
    GATEWAY_SERVER=loopback LAMBDA_RUNTIME_EXECUTOR=process
    GATEWAY_LISTEN="127.0.0.1:$port" LOCALSTACK_HOST="127.0.0.1:$port" HOSTNAME_FROM_LAMBDA=127.0.0.1

    # Where /.dockerenv exists LocalStack takes itself for its own container and writes to /var/lib and /etc.
    OVERRIDE_IN_DOCKER=0 FILESYSTEM_ROOT="$run/root"
    # It empties $TMPDIR/localstack when it starts, and unpacks function code below $TMPDIR.
    TMPDIR="$run/tmp"

    # Nothing is fetched or reported: no certificate, no usage events, no DNS server.
    SKIP_SSL_CERT_DOWNLOAD=1 DISABLE_EVENTS=1 DNS_ADDRESS=0
    NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

    # Where hostmode/ writes what botocore's models say of each request.
    LULL_JUDGED="$run/judged"

    # Queue URLs that resolve: http://127.0.0.1:PORT/queue/REGION/ACCOUNT/NAME.
    SQS_ENDPOINT_STRATEGY=path

    SERVICES="$services" STRICT_SERVICE_LOADING=1
    DYNAMODB_IN_MEMORY=1 DYNAMODB_HEAP_SIZE="${DYNAMODB_HEAP_SIZE:-256m}"
    # One compiler tier and the simple collector: DynamoDB Local takes half the processor time to start.
    JDK_JAVA_OPTIONS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

    # An event source mapping rests a second after each batch and up to ten on an empty queue, which makes it
    # slower than AWS. These are seconds.
    LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC=0.05
    LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC=1
    LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_ERROR_SEC=2

    AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_DEFAULT_REGION=us-east-1
    DEBUG="${LOCALSTACK_DEBUG:-0}"
  )
  # env -i: a profile, proxy or LocalStack setting of the caller's shell must not change what is tested.
  exec setsid env -i "${settings[@]}" "$LULL_E2E/localstack/bin/python" -m localstack.runtime.main
}

ready() { curl -fsS --noproxy '*' -m 5 -o /dev/null "http://127.0.0.1:$port/_localstack/health" 2>/dev/null; }
