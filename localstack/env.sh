# SPDX-License-Identifier: Apache-2.0

# The environment in which tests, the CDK and the AWS CLI talk to the emulators. Source it (bash):
#
#   . localstack/env.sh                                LocalStack
#   LULL_E2E_BACKEND=ministack; . localstack/env.sh    ministack, IAM enforced
#
# (A variable and no argument: a sourced file without arguments sees those of the script around it.)
#
# Ports: LOCALSTACK_PORT, MINISTACK_PORT and OPENSEARCH_PORT before sourcing, else what runs, else the default.
# It sets variables and PATH and nothing else; no folder is made, nothing is started.

LULL_E2E=${LULL_E2E:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.e2e}
case $LULL_E2E in /*) ;; *) LULL_E2E=$PWD/$LULL_E2E ;; esac
LULL_E2E_RUN=${LULL_E2E_RUN:-$LULL_E2E/run}
LOCALSTACK_PORT=${LOCALSTACK_PORT:-$(cat "$LULL_E2E_RUN/localstack/port" 2>/dev/null || echo 4566)}
MINISTACK_PORT=${MINISTACK_PORT:-$(cat "$LULL_E2E_RUN/ministack/port" 2>/dev/null || echo 4567)}
OPENSEARCH_PORT=${OPENSEARCH_PORT:-$(cat "$LULL_E2E_RUN/opensearch/port" 2>/dev/null || echo 9200)}
export LULL_E2E LULL_E2E_RUN LOCALSTACK_PORT MINISTACK_PORT OPENSEARCH_PORT

# The endpoint is an address, not a name, on purpose: for an address every AWS SDK puts the S3 bucket into the
# path. For a name it would ask for BUCKET.name, which resolves nowhere.
export LULL_E2E_BACKEND=${LULL_E2E_BACKEND:-localstack}
case $LULL_E2E_BACKEND in
  localstack) AWS_ENDPOINT_URL=http://127.0.0.1:$LOCALSTACK_PORT ;;
  ministack) AWS_ENDPOINT_URL=http://127.0.0.1:$MINISTACK_PORT ;;
  *) echo "env.sh: unknown backend $LULL_E2E_BACKEND" >&2 && return 1 ;;
esac
export AWS_ENDPOINT_URL
export OPENSEARCH_URL=http://127.0.0.1:$OPENSEARCH_PORT

# An account that exists nowhere. Profiles, sessions and instance roles of the caller are shut out, so that a
# mistake cannot reach a real account.
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
export AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_EC2_METADATA_DISABLED=true
unset AWS_PROFILE AWS_DEFAULT_PROFILE AWS_SESSION_TOKEN AWS_ROLE_ARN AWS_WEB_IDENTITY_TOKEN_FILE
unset "${!AWS_ENDPOINT_URL_@}"
export AWS_PAGER=
export NO_PROXY=127.0.0.1,localhost${NO_PROXY:+,$NO_PROXY}
export no_proxy=$NO_PROXY

# CDK. CDK_HOME keeps its cache of account numbers out of the home folder, where an entry for the key "test" of
# another emulator breaks bootstrap. The CLI takes options from variables named CDK_*: this is --no-notices.
export CDK_HOME=$LULL_E2E/cdk/home CDK_NOTICES=false CDK_DISABLE_CLI_TELEMETRY=true
export CDK_DEFAULT_ACCOUNT=000000000000 CDK_DEFAULT_REGION=us-east-1
# Node 20 serves; three programs say that it is old.
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=18,20 # a list of versions; 1 silences nothing
export AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED=true
case :$PATH: in
  *":$LULL_E2E/cdk/node_modules/.bin:"*) ;;
  *) export PATH=$LULL_E2E/cdk/node_modules/.bin:$PATH ;;
esac
