# SPDX-License-Identifier: Apache-2.0

# Typesense from two halves of its program. Sourced by start.sh. Its key is "lull".

port=8108 limit=60

home=$LULL_E2E/typesense

prepare() {
  installed Typesense "$home/typesense-server" typesense
  if [ "$fresh" = yes ]; then
    rm -rf "$run/data"
  fi
  mkdir -p "$run/data"
}

# The second port is for other nodes of a cluster, of which there are none.
launch() {
  cd "$run/data"
  exec setsid env -i "$(mark typesense)" PATH="$PATH" LANG=C.UTF-8 TZ=UTC HOME="$run/data" \
    "$home/typesense-server" --data-dir="$run/data" --api-key=lull --api-address=127.0.0.1 --api-port="$port" \
    --peering-address=127.0.0.1 --peering-port="$((port + 1))" --thread-pool-size=4
}

ready() { [ "$(curl -fsS --noproxy '*' -m 5 "http://127.0.0.1:$port/health" 2>/dev/null)" = '{"ok":true}' ]; }
