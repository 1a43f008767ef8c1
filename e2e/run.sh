#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the end-to-end tests: starts servers, runs the tests, stops what it started, also after a failure.
#
#   run.sh stack [ARGS]   LocalStack and OpenSearch: the suites of the AWS halves and of the sink, then the deployed stack
#   run.sh iam [ARGS]     ministack, which enforces IAM, and OpenSearch
#   run.sh upstreams [ARGS]   RabbitMQ before `lull bridge`; PostgreSQL, Debezium and Kafka before `lull dev`. No AWS
#   run.sh sinks [SERVER...]  the suite of each kind of sink before its real server, one after the other, and
#                         `lull dev` before it; localstack/setup.sh --only SERVER... comes first. No AWS
#   run.sh engines [ARGS] `lull dev` with OpenSearch and PostgreSQL, if they are installed. With
#                         -test.run=TestOutages it kills them, and measures how late documents are. With
#                         -test.run=TestSettled it measures how many documents a second are settled, beside a bulk
#                         loader (-smoke: a few documents). No AWS.
#                         LULL_E2E_LULL names another program than today's, such as an older one
#   run.sh acceptance [ARGS]  what `make acceptance` does on AWS, on LocalStack, or with LULL_E2E_BACKEND=ministack there
#   run.sh long [ARGS]    the same servers: an earlier build, today's over it, and back; a table outage
#
# ARGS go to the go command that runs the tests of this folder, such as -run TestBurst. localstack/setup.sh and
# `make build ARCH=<this machine's>` come first; make e2e and make e2e-iam do all of it.
#
# Servers that run already, such as those of localstack/compose.yml, are used and left alone:
#   LULL_E2E_ENDPOINT     AWS, such as http://127.0.0.1:4566
#   LULL_E2E_OPENSEARCH   OpenSearch, such as http://127.0.0.1:9200
#   LULL_E2E_SINK_URL     OpenSearch as the functions see it, where they run in containers: http://opensearch:9200
# LULL_E2E_DIST is where the functions' binaries are (default dist/<architecture>, or dist on arm64).
#
# Where one test fails, it runs a second time, on fresh servers: an emulator may answer late on a busy machine. It
# is named with the reason, here and in the file LULL_RETRIED. Where more than one test fails, the run has failed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

what=${1:-}
shift || true
# Sinks need neither AWS nor functions.
if [ "$what" = sinks ]; then
  . localstack/env.sh
  mkdir -p "$LULL_E2E_RUN/sinks"
  go build -buildvcs=false -o "$LULL_E2E_RUN/sinks/lull" ./cmd/lull
  export LULL_E2E_LULL=$LULL_E2E_RUN/sinks/lull PGUSER=postgres TYPESENSE_API_KEY=lull
  [ $# -gt 0 ] || set -- postgres typesense elasticsearch elasticsearch9
  trap 'localstack/stop.sh "$@"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  for server in "$@"; do
    localstack/start.sh "$server" --fresh
    port=$(cat "$LULL_E2E_RUN/$server/port")
    case $server in
      postgres) sink=postgres://127.0.0.1:$port/postgres variable=LULL_TEST_POSTGRES url=$sink suite=(./sink/postgres) ;;
      typesense) url=http://127.0.0.1:$port variable=LULL_TEST_TYPESENSE suite=(./sink/typesense) sink=typesense:$url ;;
      elasticsearch*)
        url=http://127.0.0.1:$port variable=LULL_TEST_ELASTICSEARCH sink=elasticsearch:$url
        suite=(./sink/opensearch ./internal/operator/rebuild)
        ;;
      *) echo "e2e: $server is not the server of a sink" >&2; exit 2 ;;
    esac
    echo "=== $server"
    env "$variable=$url" go test -count=1 -p 1 -timeout 10m "${suite[@]}"
    # After the suite: the template that it leaves is for the indices of both.
    LULL_E2E_SINK=$sink go test -tags e2esinks -count=1 -timeout 10m ./e2e/sinks
    localstack/stop.sh "$server"
  done
  exit 0
fi

if [ "$what" = engines ]; then
  . localstack/env.sh
  mkdir -p "$LULL_E2E_RUN/engines"
  started=()
  for server in opensearch postgres; do
    [ ! -d "$LULL_E2E/$server" ] || started+=("$server")
  done
  if [ -z "${LULL_E2E_LULL:-}" ]; then
    LULL_E2E_LULL=$LULL_E2E_RUN/engines/lull
    go build -buildvcs=false -o "$LULL_E2E_LULL" ./cmd/lull
  fi
  LULL_E2E_LOADER=$LULL_E2E_RUN/engines/loader
  (cd e2e/loader && go build -buildvcs=false -o "$LULL_E2E_LOADER" .)
  export LULL_E2E_LULL LULL_E2E_LOADER LULL_E2E_ROOT=$root LULL_E2E_RUN LULL_E2E_STARTED=${started[*]} PGUSER=postgres
  trap '[ ${#started[@]} = 0 ] || localstack/stop.sh "${started[@]}"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  for server in "${started[@]}"; do
    port=${server^^}_PORT
    # shellcheck disable=SC2086 # an empty port is not an argument
    localstack/start.sh "$server" ${!port:-} --fresh
  done
  go test -tags e2eengines -count=1 -v -timeout 60m ./e2e/engines -args "$@"
  exit 0
fi

case $what in
  stack) backend=localstack tags=e2e tests=./e2e limit=40m ;;
  iam) backend=ministack tags=e2eiam tests=./e2e/iam limit=20m ;;
  long) backend=ministack tags=e2elong tests=./e2e/long limit=20m ;;
  acceptance) backend=${LULL_E2E_BACKEND:-localstack} tags=e2e tests=./e2e ;;
  upstreams) tags=e2eupstreams tests=./e2e/upstreams limit=20m ;;
  *) echo "usage: e2e/run.sh stack|iam|long|acceptance|upstreams|sinks|engines [ARGS]" >&2; exit 2 ;;
esac

# Upstreams need neither AWS nor functions: their tests start and kill `lull` and the servers themselves.
if [ "$what" = upstreams ]; then
  . localstack/env.sh
  export LULL_E2E_ROOT=$root LULL_E2E_WORK=$LULL_E2E_RUN/$what
  export LULL_E2E_RABBITMQ=${RABBITMQ_PORT:-5672} LULL_E2E_KAFKA=${KAFKA_PORT:-9092} LULL_E2E_POSTGRES=${POSTGRES_PORT:-5440}
  rm -rf "$LULL_E2E_WORK"
  mkdir -p "$LULL_E2E_WORK"
  go build -buildvcs=false -o "$LULL_E2E_WORK/lull" ./cmd/lull
  go test -tags "$tags" -c -o "$LULL_E2E_WORK/tests" "$tests"
  trap 'localstack/stop.sh rabbitmq kafka postgres' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  localstack/start.sh rabbitmq "$LULL_E2E_RABBITMQ" --fresh
  localstack/start.sh kafka "$LULL_E2E_KAFKA" --fresh
  localstack/start.sh postgres "$LULL_E2E_POSTGRES" --fresh
  cd "$tests"
  exit_code=0
  "$LULL_E2E_WORK/tests" -test.v -test.timeout "$limit" "${@/#-/-test.}" || exit_code=$?
  cd "$root"
  exit $exit_code
fi

arch=$(go env GOHOSTARCH)
dist=dist/$arch
[ "$arch" != arm64 ] || dist=dist
export LULL_E2E_DIST=${LULL_E2E_DIST:-$root/$dist}
[ -x "$LULL_E2E_DIST/index/opensearch/bootstrap" ] || { echo "e2e: no functions in $LULL_E2E_DIST: make build ARCH=$arch" >&2; exit 1; }

# build_earlier builds the earlier commit that is upgraded from, once: the template's program and the functions.
# Choose a later one, with the layout of its folders, when the stored formats of this one are no longer read.
earlier=b612699108bf73ae4531a78448d6d70ed141c720
build_earlier() {
  local folder=$LULL_E2E/earlier/$earlier-$arch name
  export LULL_E2E_BEFORE=$folder
  [ ! -e "$folder/complete" ] || return 0
  # A clone without its history has the commit from where it was cloned.
  git cat-file -e "$earlier^{commit}" 2>/dev/null || git fetch --quiet --depth=1 origin "$earlier" || {
    echo "e2e: there is no commit $earlier to upgrade from: git fetch --unshallow" >&2
    exit 1
  }
  rm -rf "$folder"
  mkdir -p "$folder/source"
  git archive "$earlier" | tar -x -C "$folder/source"
  (
    cd "$folder/source"
    go build -trimpath -buildvcs=false -o ../infra ./infra/cmd
    for name in receive index prune dlq; do
      CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags lambda.norpc -ldflags "-s -w" -o "../dist/$name/bootstrap" "./functions/$name"
    done
  )
  rm -rf "$folder/source"
  touch "$folder/complete"
}
[ "$what" != long ] || {
  . localstack/env.sh # says where LULL_E2E is
  build_earlier
}

suites=(./internal/aws/dynamodb ./internal/aws/sqs ./internal/aws/s3 ./internal/aws/stepfunctions ./sink/opensearch
  ./internal/operator/rebuild)
# The senders in TypeScript and Python, where `make senders` has installed their SDKs.
if [ -x dist/senders/venv/bin/python ]; then
  export LULL_SENDERS=$root/dist/senders
  suites+=(./examples/senders)
fi
# Compiled before anything is started: an emulator that shares the processors with a compiler answers late.
[ "$what" = acceptance ] || go test -run '^$' "${suites[@]}" >/dev/null
go test -tags "$tags" -run '^$' -c -o /dev/null "$tests"

started=()
cleanup() {
  local status=$?
  trap - EXIT INT TERM
  if [ ${#started[@]} -gt 0 ]; then
    localstack/stop.sh "${started[@]}" || status=1
  fi
  exit $status
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# start starts the servers that are not given, empty.
start() {
  started=()
  if [ -z "${LULL_E2E_ENDPOINT:-}" ]; then
    started+=("$backend")
    port=${LOCALSTACK_PORT:-}
    [ "$backend" = localstack ] || port=${MINISTACK_PORT:-}
    # shellcheck disable=SC2086 # an empty port is not an argument
    localstack/start.sh "$backend" $port
  fi
  if [ -z "${LULL_E2E_OPENSEARCH:-}" ]; then
    started+=(opensearch)
    # shellcheck disable=SC2086 # an empty port is not an argument
    localstack/start.sh opensearch ${OPENSEARCH_PORT:-} --fresh
  fi
}
start

LULL_E2E_BACKEND=$backend
. localstack/env.sh
# Beside servers that run already, setup.sh may never have run.
command -v cdk >/dev/null || (. localstack/lib.sh && install_cdk)
export AWS_ENDPOINT_URL=${LULL_E2E_ENDPOINT:-$AWS_ENDPOINT_URL}
export OPENSEARCH_URL=${LULL_E2E_OPENSEARCH:-$OPENSEARCH_URL}
[ ${#started[@]} -lt 2 ] || export LULL_E2E_SERVERS=ours
rm -f "$LULL_E2E_RUN/ministack/calls.first"
[ ! -x "$LULL_E2E/rie/aws-lambda-rie" ] || export LULL_E2E_RIE=$LULL_E2E/rie/aws-lambda-rie

export LULL_E2E_ROOT=$root LULL_E2E_WORK=$LULL_E2E_RUN/$what
rm -rf "$LULL_E2E_WORK"
mkdir -p "$LULL_E2E_WORK"
go build -buildvcs=false -o "$LULL_E2E_WORK/infra" ./infra/cmd
go build -buildvcs=false -o "$LULL_E2E_WORK/lull" ./cmd/lull

if [ "$what" = acceptance ]; then
  go build -buildvcs=false -o "$LULL_E2E_WORK/acceptance" ./e2e/acceptance
  "$LULL_E2E_WORK/acceptance" -on "$backend" -yes "$@"
  exit 0
fi

# plant sends LocalStack a request with one fault of each kind, which botocore's models must find (hostmode/models.py).
plant() {
  [ "$backend" = localstack ] && [[ " ${started[*]} " = *" localstack "* ]] || return 0
  local name
  name=$(printf '%01025d' 0)
  curl -sS --noproxy '*' -m 60 -o /dev/null -A planted -H 'X-Amz-Target: DynamoDB_20120810.GetItem' \
    -H 'Content-Type: application/x-amz-json-1.0' \
    -H 'Authorization: AWS4-HMAC-SHA256 Credential=test/20261128/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0' \
    -d '{"TableName":"'"$name"'","Kye":{},"ConsistentRead":"yes","ReturnConsumedCapacity":"SOME"}' "$AWS_ENDPOINT_URL"
}

# judged says what the models found in all requests since LocalStack's start, and fails if there was a fault.
judged() {
  [ "$backend" = localstack ] || return 0
  [[ " ${started[*]} " = *" localstack "* ]] || { echo "e2e: no model judges the requests to a server that run.sh did not start"; return 0; }
  "$LULL_E2E/localstack/bin/python" -m hostmode.models "$LULL_E2E_RUN/localstack/judged"
}

# rights holds the calls of ministack's roles against their rights, after all tests of the roles.
rights() { "$LULL_E2E/ministack/bin/python" localstack/ministack/rights.py "$LULL_E2E_RUN"/ministack/calls*; }

# Each of these runs tests with the flags ARGS and keeps what they say in the file output.
run_suites() {
  LULL_TEST_AWS=$AWS_ENDPOINT_URL LULL_TEST_OPENSEARCH=$OPENSEARCH_URL \
    go test -count=1 -p 1 -timeout 15m "${suites[@]}" "$@" 2>&1 | tee "$LULL_E2E_WORK/output"
}
run_stack() { go test -tags "$tags" -count=1 -v -timeout "$limit" "$tests" "$@" 2>&1 | tee "$LULL_E2E_WORK/output"; }

# with_second_try runs tests, and those of a single failed test again.
with_second_try() {
  local run=$1 failed reason
  shift
  "$run" "$@" && return 0
  mapfile -t failed < <(sed -n 's/^--- FAIL: \([^ ]*\).*/\1/p' "$LULL_E2E_WORK/output")
  # A panic or a time-out ends the tests that come after it, too.
  if [ ${#failed[@]} != 1 ] || [ ${#started[@]} -lt 2 ] || grep -q '^panic:' "$LULL_E2E_WORK/output"; then
    echo "e2e: ${#failed[@]} tests failed: ${failed[*]}" >&2
    exit 1
  fi
  reason=$(grep -m 1 -E '^ +[a-z_]+\.go:[0-9]+: ' "$LULL_E2E_WORK/output" || echo 'it gave no reason')
  echo "e2e: $what: ${failed[0]} runs a second time: $reason" | tee -a "${LULL_RETRIED:-/dev/null}" >&2
  mv "$LULL_E2E_WORK/output" "$LULL_E2E_WORK/output.first"
  judged
  [ "$backend" != ministack ] || cp "$LULL_E2E_RUN/ministack/calls" "$LULL_E2E_RUN/ministack/calls.first"
  localstack/stop.sh "${started[@]}"
  start
  plant
  "$run" -run "^${failed[0]}\$"
}

plant
if [ "$what" = stack ] && [[ "$*" = "" || "$*" = -short ]]; then
  # The suites that every half of a seam passes, and the sink's, against the real protocols.
  with_second_try run_suites
fi
with_second_try run_stack "$@"
judged
[ "$what" != iam ] || [ $# != 0 ] || [[ " ${started[*]} " != *" ministack "* ]] || rights
