# SPDX-License-Identifier: Apache-2.0

# Elasticsearch from its Maven artifact for tests: the plain server, without a greeting, data streams, _reindex and
# scripts. Sourced by start.sh, and by elasticsearch9.sh.

port=9208 limit=240

home=$LULL_E2E/$server

prepare() {
  installed Elasticsearch "$home/bin/elasticsearch" "$server"
  if [ "$fresh" = yes ]; then
    rm -rf "$run/data"
  fi
  mkdir -p "$run/data" "$run/logs" "$run/tmp"
  # It writes a keystore beside its settings.
  rm -rf "$run/config"
  mkdir -p "$run/config"
  cp "$home/config/log4j2.properties" "$run/config/"
  cat >"$run/config/elasticsearch.yml" <<YML
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
xpack.security.enabled: false
# Tests delete their indices by a pattern.
action.destructive_requires_name: false
YML
  # One compiler tier and the simple collector: half the processor time until ready. The other lines are the
  # server's own.
  cat >"$run/config/jvm.options" <<JVM
-Xms512m
-Xmx512m
-XX:+UseSerialGC
-XX:TieredStopAtLevel=1
-XX:ErrorFile=$run/logs/hs_err_pid%p.log
-Djava.io.tmpdir=$run/tmp
20-:--add-modules=jdk.incubator.vector
-Dorg.apache.lucene.store.defaultReadAdvice=normal
-Dorg.apache.lucene.store.MMapDirectory.sharedArenaMaxPermits=1
JVM
  choose_user "$home/bin/elasticsearch" "$run/data" "$run/logs" "$run/config" "$run/tmp"
}

launch() {
  cd "$run/tmp"
  exec setsid "${as_nobody[@]}" env -i "$(mark "$server")" \
    PATH="$PATH" LANG=C.UTF-8 TZ=UTC HOME="$run/tmp" ES_TMPDIR="$run/tmp" \
    ES_JAVA_HOME="$(readlink -f "$home/java")" ES_PATH_CONF="$run/config" \
    "$home/bin/elasticsearch"
}

# Yellow is as healthy as one node gets: replicas of earlier data have no home.
ready() {
  curl -fsS --noproxy '*' -m 5 -o /dev/null "http://127.0.0.1:$port/_cluster/health?wait_for_status=yellow&timeout=4s" 2>/dev/null
}
