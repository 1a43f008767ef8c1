# SPDX-License-Identifier: Apache-2.0

# OpenSearch from its Maven artifact: the plain server, no security plugin, no scripting. Sourced by start.sh.

port=9200 limit=180

home=$LULL_E2E/opensearch

prepare() {
  installed OpenSearch "$home/bin/opensearch"
  if [ "$fresh" = yes ]; then
    rm -rf "$run/data"
  fi
  # A configuration folder of our own: three paths of the shipped jvm.options are relative to the install
  # folder, which must stay read-only.
  mkdir -p "$run/data" "$run/logs" "$run/config" "$run/tmp"
  cp "$home/config/log4j2.properties" "$run/config/"
  cat >"$run/config/opensearch.yml" <<YML
cluster.name: lull-e2e
node.name: one
discovery.type: single-node
network.host: 127.0.0.1
http.port: $port
transport.port: 0
path.data: $run/data
path.logs: $run/logs
# A full disk of the machine must not turn indices read-only in the middle of a test.
cluster.routing.allocation.disk.threshold_enabled: false
node.store.allow_mmap: false
# Judged by what requests reserve: a small heap with garbage in it answered 429 to a test that wrote one document.
indices.breaker.total.use_real_memory: false
YML
  # One compiler tier and the simple collector: half the processor time until ready. A benchmark sets other options.
  # shellcheck disable=SC2086 # several options
  cat >"$run/config/jvm.options" <<JVM
-Xms512m
-Xmx512m
-XX:+UseSerialGC
-XX:TieredStopAtLevel=1
$(printf '%s\n' ${OPENSEARCH_JVM:-})
-XX:ErrorFile=$run/logs/hs_err_pid%p.log
-Djava.io.tmpdir=$run/tmp
18-:-Djava.security.manager=allow
-Djava.util.concurrent.ForkJoinPool.common.threadFactory=org.opensearch.secure_sm.SecuredForkJoinWorkerThreadFactory
JVM
  # OpenSearch refuses to run as root.
  choose_user "$home/bin/opensearch" "$run/data" "$run/logs" "$run/config" "$run/tmp"
}

launch() {
  local java
  java=$(readlink -f "$LULL_E2E/lib/java/21")
  cd "$run/tmp"
  exec setsid "${as_nobody[@]}" env -i "$(mark opensearch)" \
    PATH="$PATH" LANG=C.UTF-8 TZ=UTC HOME="$run/tmp" OPENSEARCH_TMPDIR="$run/tmp" \
    OPENSEARCH_JAVA_HOME="$java" OPENSEARCH_PATH_CONF="$run/config" \
    "$home/bin/opensearch"
}

# Yellow is as healthy as one node gets: replicas of earlier data have no home.
ready() {
  curl -fsS --noproxy '*' -m 5 -o /dev/null "http://127.0.0.1:$port/_cluster/health?wait_for_status=yellow&timeout=4s" 2>/dev/null
}
