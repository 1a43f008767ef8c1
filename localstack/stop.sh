#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Stops servers that start.sh started, with every process below them.
#
#   stop.sh                 all of them
#   stop.sh SERVER...       these
#
# Data stay (OpenSearch finds them again). What does not run is not an error. Exits 1 when a process
# survives SIGKILL, the port stays open, or a server listened on another address than loopback.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

locked=no # --locked: called by start.sh, which holds the lock
if [ "${1:-}" = --locked ]; then
  locked=yes
  shift
fi
# shellcheck disable=SC2046 # names without spaces
[ $# -gt 0 ] || set -- $(servers)

# gone SERVER SECONDS waits until no process of a server is left.
gone() {
  local deadline=$(($(milliseconds) + $2 * 1000))
  while [ -n "$(owned_by "$1")" ]; do
    [ "$(milliseconds)" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}

# closed PORT SECONDS waits until nobody accepts connections.
closed() {
  local deadline=$(($(milliseconds) + $2 * 1000))
  while listening "$1"; do
    [ "$(milliseconds)" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}

# end SERVER asks the server itself to end, which takes its children along, and kills what is left. Only
# some have data to put in order; the others lose everything anyway and get less time.
end() {
  local pid grace=3 signal=TERM
  case $1 in
    opensearch) grace=60 ;;
    postgres) grace=60 signal=INT ;; # TERM waits until the last client has gone
  esac
  pid=$(cat "$LULL_E2E_RUN/$1/pid" 2>/dev/null || true)
  if [ -n "$pid" ] && owned_by "$1" | grep -qx "$pid"; then
    kill -"$signal" "$pid" 2>/dev/null || true
    gone "$1" "$grace" && return 0
  fi
  for pid in $(owned_by "$1"); do
    kill -KILL "$pid" 2>/dev/null || true
  done
  gone "$1" 20
}

stop_one() {
  local server=$1 run=$LULL_E2E_RUN/$1 port addresses
  [ -d "$run" ] || return 0
  if [ $locked = no ]; then
    exec 9>"$run/lock"
    flock -w 120 9 || die "$server: another start or stop is busy"
  fi
  if [ -n "$(owned_by "$server")" ]; then
    addresses=$(exposed "$server")
    end "$server" || die "$server: processes survive: $(owned_by "$server" | tr '\n' ' ')"
    say "$server stopped"
    [ -z "$addresses" ] || die "$server: listened on more than 127.0.0.1: $addresses"
  fi
  port=$(cat "$run/port" 2>/dev/null || true)
  rm -f "$run/pid" "$run/port"
  # A killed process loses its environment, by which it is known, a moment before its sockets.
  if [ -n "$port" ]; then
    closed "$port" 10 || die "$server: something still listens on port $port"
  fi
}

for server in "$@"; do
  [ -f "$here/servers/$server.sh" ] || die "stop.sh: unknown server $server"
  stop_one "$server"
done
