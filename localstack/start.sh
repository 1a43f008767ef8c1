#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Starts one server in the background and returns when it is ready.
#
#   start.sh localstack [PORT]         AWS without Docker; always begins empty     default 4566
#   start.sh opensearch [PORT]         keeps its data over stop and start          default 9200
#   start.sh opensearch [PORT] --fresh begins empty
#   start.sh ministack  [PORT]         AWS with IAM enforced; always begins empty  default 4567
#   start.sh SERVER ...                the others in servers/: setup.sh --only installs them
#
# Everything binds 127.0.0.1. Pid, port, log and data are in $LULL_E2E_RUN/SERVER. A server that already
# runs on that port is left alone. A start that fails prints the end of the log, stops what it started and
# exits 1.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

server=${1:-}
[ -f "$here/servers/$server.sh" ] ||
  die "usage: start.sh SERVER [PORT] [--fresh], where SERVER is one of $(servers)"
shift
# Each file sets port and limit, the seconds until it is ready on a machine that is busy with other work (idle,
# each is within ten), and defines prepare (checks and folders), launch (the process becomes the server) and
# ready (exit 0 when it answers).
. "$here/servers/$server.sh"

fresh=no
for argument in "$@"; do
  case $argument in
    --fresh) fresh=yes ;;
    [0-9]*) port=$argument ;;
    *) die "start.sh $server: unknown argument $argument" ;;
  esac
done

run=$LULL_E2E_RUN/$server
mkdir -p "$run"
exec 9>"$run/lock"
flock -w 120 9 || die "$server: another start or stop is busy"

if [ -n "$(owned_by "$server")" ]; then
  if [ "$(cat "$run/port" 2>/dev/null)" = "$port" ] && ready && [ "$fresh" = no ]; then
    say "$server already runs on 127.0.0.1:$port"
    exit 0
  fi
  "$here/stop.sh" --locked "$server"
fi
if listening "$port"; then
  die "$server: port $port is in use by something else"
fi

began=$(milliseconds)
prepare
# The descriptor of the lock is closed in the server, or stop.sh would wait for it for ever.
launch >"$run/log" 2>&1 </dev/null 9>&- &
pid=$!
echo "$pid" >"$run/pid"
echo "$port" >"$run/port"

fail() {
  say "$server $1; the end of $run/log:"
  tail -n 40 "$run/log" >&2
  "$here/stop.sh" --locked "$server"
  exit 1
}

deadline=$((began + limit * 1000))
until ready; do
  kill -0 "$pid" 2>/dev/null || fail "ended while starting"
  [ "$(milliseconds)" -lt "$deadline" ] || fail "was not ready after $limit s"
  sleep 0.1
done
say "$server ready on 127.0.0.1:$port after $(($(milliseconds) - began)) ms (pid $pid)"
