# SPDX-License-Identifier: Apache-2.0

# ministack with IAM enforced. Sourced by start.sh.

port=4567 limit=60

prepare() {
  installed ministack "$LULL_E2E/ministack/bin/python"
  rm -rf "$run/tmp" "$run/home"
  mkdir -p "$run/tmp" "$run/home"
}

launch() {
  # env -i also keeps the caller's variables out of the functions: ministack hands its own environment on.
  exec setsid env -i "$(mark ministack)" \
    PATH="$PATH" LANG=C.UTF-8 TZ=UTC HOME="$run/home" TMPDIR="$run/tmp" STATE_DIR="$run/tmp/state" S3_DATA_DIR="$run/tmp/s3" \
    BIND_HOST=127.0.0.1 GATEWAY_PORT="$port" MINISTACK_HOST=127.0.0.1 \
    LULL_CALLS="$run/calls" AUTH=true LAMBDA_EXECUTOR=local SFN_WAIT_SCALE="${SFN_WAIT_SCALE:-1}" \
    AWS_ENDPOINT_URL="http://127.0.0.1:$port" AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_DEFAULT_REGION=us-east-1 \
    NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost LOG_LEVEL="${MINISTACK_LOG_LEVEL:-INFO}" \
    "$LULL_E2E/ministack/bin/python" "$here/ministack/serve.py"
}

ready() { curl -fsS --noproxy '*' -m 5 -o /dev/null "http://127.0.0.1:$port/_ministack/health" 2>/dev/null; }
