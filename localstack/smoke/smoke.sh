#!/usr/bin/env bash
# Checks that the ground holds before the product's tests stand on it. Servers must run (start.sh).
#
#   smoke.sh               LocalStack and OpenSearch
#   smoke.sh ministack     the second backend
#   smoke.sh cdk           cdk bootstrap, deploy and destroy of a small app, on LocalStack
#
# Prints a line per check; exits 1 when one failed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
what=${1:-localstack}
case $what in
  ministack) LULL_E2E_BACKEND=ministack ;;
  localstack | cdk) LULL_E2E_BACKEND=localstack ;;
  *) echo "usage: smoke.sh [localstack|ministack|cdk]" >&2; exit 2 ;;
esac
. "$root/localstack/env.sh"

# The stack's template says arm64; what runs here is built for this machine.
work=$LULL_E2E_RUN/smoke
mkdir -p "$work/function"
(cd "$root" && CGO_ENABLED=0 GOOS=linux go build -trimpath -tags lambda.norpc -ldflags '-s -w' \
  -o "$work/function/bootstrap" ./localstack/smoke/function)

if [ "$what" = cdk ]; then
  (cd "$root" && go build -o "$work/app" ./localstack/smoke/app)
  export SMOKE_CODE=$work/function
  cd "$work"
  rm -rf cdk.out
  trap 'rm -rf "$work/cdk.out"' EXIT
  cdk bootstrap "aws://$CDK_DEFAULT_ACCOUNT/$CDK_DEFAULT_REGION"
  cdk deploy --app "$work/app" --output "$work/cdk.out" --require-approval never --outputs-file "$work/outputs.json"
  status=0
  "$LULL_E2E/localstack/bin/python" "$root/localstack/smoke/smoke.py" cdk "$work" || status=$?
  cdk destroy --app "$work/app" --output "$work/cdk.out" --force
  exit $status
fi
exec "$LULL_E2E/localstack/bin/python" "$root/localstack/smoke/smoke.py" "$what" "$work"
