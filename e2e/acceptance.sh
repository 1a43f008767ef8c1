#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs acceptance on an account of AWS, with the credentials that the AWS CLI would use. `make build` comes first.
#
#   acceptance.sh ACCOUNT [ARGS]    e2e/acceptance -help lists ARGS
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

[[ "${1:-}" =~ ^[0-9]{12}$ ]] || {
  echo 'acceptance: name the account that your credentials belong to: make acceptance ACCOUNT=111122223333' >&2
  exit 2
}
account=$1
shift
: "${AWS_REGION:?acceptance: set it to the region to deploy to, such as eu-west-1}"
export AWS_DEFAULT_REGION=$AWS_REGION CDK_DEFAULT_ACCOUNT=$account CDK_DEFAULT_REGION=$AWS_REGION
for name in "${!AWS_ENDPOINT_URL@}"; do unset "$name"; done

LULL_E2E=${LULL_E2E:-$root/.e2e}
[ -x "$LULL_E2E/cdk/node_modules/.bin/cdk" ] || (. localstack/lib.sh && install_cdk)
export PATH=$LULL_E2E/cdk/node_modules/.bin:$PATH
export CDK_HOME=$LULL_E2E/cdk/home-$account CDK_NOTICES=false CDK_DISABLE_CLI_TELEMETRY=true
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=18,20 AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED=true

# What a run has done is in this folder, so that the next one continues.
export LULL_E2E_ROOT=$root LULL_E2E_WORK=$root/out/acceptance LULL_E2E_DIST=${LULL_E2E_DIST:-$root/dist}
mkdir -p "$LULL_E2E_WORK"
go build -buildvcs=false -o "$LULL_E2E_WORK/infra" ./infra/cmd
go build -buildvcs=false -o "$LULL_E2E_WORK/lull" ./cmd/lull
go build -buildvcs=false -o "$LULL_E2E_WORK/acceptance" ./e2e/acceptance
exec "$LULL_E2E_WORK/acceptance" -on aws -account "$account" -page docs/acceptance.md "$@"
