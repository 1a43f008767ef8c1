#!/usr/bin/env bash
# Stops servers that start.sh started, with every process below them.
#
#   stop.sh                 all of them
#   stop.sh SERVER...       these
#
# Data stay (OpenSearch finds them again). What does not run is not an error. Exits 1 when a process
# survives SIGKILL or the port stays open.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

locked=no # --locked: called by start.sh, which holds the lock
if [ "${1:-}" = --locked ]; then
  locked=yes
  shift
fi
[ $# -gt 0 ] || set -- localstack ministack opensearch

# signal_all SIGNAL SERVER sends a signal to every process of a server, by pid.
signal_all() {
  local pid
  for pid in $(owned_by "$2"); do
    kill "-$1" "$pid" 2>/dev/null || true
  done
}

# gone SERVER SECONDS waits until no process of a server is left.
gone() {
  local deadline=$(($(milliseconds) + $2 * 1000))
  while [ -n "$(owned_by "$1")" ]; do
    [ "$(milliseconds)" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}

stop_one() {
  local server=$1 run=$LULL_E2E_RUN/$1 pid port
  [ -d "$run" ] || return 0
  if [ $locked = no ]; then
    exec 9>"$run/lock"
    flock -w 120 9 || die "$server: another start or stop is busy"
  fi
  if [ -n "$(owned_by "$server")" ]; then
    # The server itself first: it ends its children in order. What is left is killed.
    pid=$(cat "$run/pid" 2>/dev/null || true)
    if [ -n "$pid" ] && owned_by "$server" | grep -qx "$pid"; then
      kill -TERM "$pid" 2>/dev/null || true
      for _ in $(seq 150); do
        # Not kill -0: in a container without an init process the dead server stays as a zombie.
        owned_by "$server" | grep -qx "$pid" || break
        sleep 0.1
      done
    fi
    signal_all TERM "$server"
    gone "$server" 2 || signal_all KILL "$server"
    gone "$server" 10 || die "$server: processes survive: $(owned_by "$server" | tr '\n' ' ')"
    say "$server stopped"
  fi
  port=$(cat "$run/port" 2>/dev/null || true)
  rm -f "$run/pid" "$run/port"
  if [ -n "$port" ] && listening "$port"; then
    die "$server: something still listens on port $port"
  fi
}

for server in "$@"; do
  case $server in
    localstack | opensearch | ministack) stop_one "$server" ;;
    *) die "stop.sh: unknown server $server" ;;
  esac
done
