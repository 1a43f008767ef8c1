#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Starts AWS and OpenSearch on this machine, deploys lull to them, and sends a first document.
#
#   up.sh            without Docker on Linux, with Docker elsewhere
#
#   LULL_DOCKER=1    uses Docker on Linux too; 0 says that there is none
#   LULL_CONFIG      the settings to deploy                              default: localstack/lull.yaml
#   LOCALSTACK_PORT, OPENSEARCH_PORT                                     default: 4566, 9200
#
# It always begins with empty servers: LocalStack cannot update a stack that it has. Everything that it writes is in
# $LULL_E2E/local. down.sh ends it. It keeps to what the bash 3.2 of macOS knows.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
root=$(dirname "$here")
config=${LULL_CONFIG:-$here/lull.yaml}
case $config in /*) ;; *) config=$PWD/$config ;; esac
local=$LULL_E2E/local
docker=${LULL_DOCKER:-}
[ -n "$docker" ] || { if [ "$(uname -s)" = Linux ]; then docker=0; else docker=1; fi; }

need() { command -v "$1" >/dev/null 2>&1 || die "$1 is needed: $2"; }
need go "install Go (go.mod says which version)"
need make "install make"
need curl "install curl"
[ -r "$config" ] || die "LULL_CONFIG: there is no file $config"
if [ "$docker" = 1 ]; then
  need npm "install Node 18 or later (brew install node, or apt-get install nodejs npm)"
  need docker "install Docker Desktop, or another Docker engine"
  docker compose version >/dev/null 2>&1 || die "docker compose is needed: install Docker's compose plugin"
  docker info >/dev/null 2>&1 || die "the Docker engine does not answer: start it"
else
  "$here/setup.sh"
fi

"$here/down.sh" # servers of an earlier run
mkdir -p "$local/bin"
export LULL_E2E LULL_E2E_RUN=$local/run
trap '[ $? = 0 ] || { say "it did not come up: stopping what was started"; "$here/down.sh"; }' EXIT

# Compiled before a server is started, which would answer late beside a compiler.
say "building the functions, the CDK app and the command line"
arch=$(go env GOHOSTARCH)
(cd "$root" && make build ARCH="$arch" && go build -buildvcs=false -o "$local/infra" ./infra/cmd && go build -buildvcs=false -o "$local/bin/lull" ./cmd/lull)
dist=$root/dist
[ "$arch" = arm64 ] || dist=$dist/$arch

if [ "$docker" = 1 ]; then
  export LOCALSTACK_PORT=${LOCALSTACK_PORT:-4566} OPENSEARCH_PORT=${OPENSEARCH_PORT:-9200}
  [ -x "$LULL_E2E/cdk/node_modules/.bin/cdk" ] || install_cdk
  echo docker >"$local/how"
  docker compose -f "$here/compose.yml" up --wait
else
  echo servers >"$local/how"
  "$here/start.sh" localstack ${LOCALSTACK_PORT:+"$LOCALSTACK_PORT"}
  "$here/start.sh" opensearch ${OPENSEARCH_PORT:+"$OPENSEARCH_PORT"} --fresh
fi
. "$here/env.sh"

# Functions in containers know OpenSearch by its service's name, the command line by its port.
inside=$OPENSEARCH_URL
[ "$docker" = 0 ] || inside=http://opensearch:9200
sed "s|http://127.0.0.1:9200|$OPENSEARCH_URL|" "$config" >"$local/lull.yaml"
sed "s|http://127.0.0.1:9200|$inside|" "$config" >"$local/deployed.yaml"
cat >"$local/env" <<EOF
# Made by localstack/up.sh. Source it in this folder: the commands then talk to the stack on this machine.
export LULL_E2E='$LULL_E2E' LULL_E2E_RUN='$LULL_E2E_RUN' LOCALSTACK_PORT=$LOCALSTACK_PORT OPENSEARCH_PORT=$OPENSEARCH_PORT
LULL_E2E_BACKEND=localstack
. '$here/env.sh'
export LULL_AWS=1 PATH='$local/bin':\$PATH
EOF

cd "$local" # nothing of the caller's folder: cdk.json and cdk.context.json would count
export PATH=$local/bin:$PATH LULL_AWS=1
# quietly COMMAND...   shows what a command prints only where it fails.
quietly() { "$@" >"$local/log" 2>&1 || { cat "$local/log" >&2; die "this failed: $*"; }; }
say "deploying: about a minute"
quietly cdk bootstrap "aws://$CDK_DEFAULT_ACCOUNT/$CDK_DEFAULT_REGION"
export LULL_CONFIG=$local/deployed.yaml LULL_DIST=$dist LULL_EPHEMERAL=true LULL_SENDERS=$CDK_DEFAULT_ACCOUNT
quietly cdk deploy --all --require-approval never --app "$local/infra" --output "$local/cdk.out"
unset LULL_CONFIG
quietly lull index install-template --config lull.yaml

# Settings of your own may have no native source: then the stack is up, and you know better what to send.
if [ "$config" = "$here/lull.yaml" ]; then
  say "sending a first document"
  echo '{"type":"doc.changed","source":"/local-up","subject":"hello","collection":"content","sequence":"1","data":{"title":"Hello from lull"}}' >hello.ndjson
  lull publish hello.ndjson
  lull wait 'content#hello' --version 1
fi

cat <<EOF

lull is deployed to AWS on this machine: LocalStack on $AWS_ENDPOINT_URL, OpenSearch on $OPENSEARCH_URL

Try, in this order:

  cd $local && . ./env
  lull explain 'content#hello'
  curl -s '$OPENSEARCH_URL/lull-content/_search?q=title:hello&pretty'
  lull status
  lull publish YOUR.ndjson
  lull console

The settings are $config. make local-up LULL_CONFIG=FILE deploys yours.
make local-down ends it.
EOF
