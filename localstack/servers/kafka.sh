# SPDX-License-Identifier: Apache-2.0

# Kafka from its Maven artifacts, one node that is broker and controller (KRaft). Sourced by start.sh. The next port is
# the controller's. Kafka Connect, with Debezium on the same class path, is started by e2e/upstreams.

port=9092 limit=120

classpath=$LULL_E2E/kafka
java=("$LULL_E2E/lib/java/21/bin/java" -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1
  -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$classpath/*")

prepare() {
  installed Kafka "$classpath" kafka
  if [ "$fresh" = yes ]; then
    rm -rf "$run/data"
  fi
  mkdir -p "$run/data"
  cat >"$run/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$run/data
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
PROPERTIES
  [ -e "$run/data/meta.properties" ] ||
    "${java[@]}" kafka.tools.StorageTool format -t lull-e2e-AAAAAAAAAAAAA -c "$run/server.properties" >/dev/null 2>&1 ||
    die "kafka: its storage cannot be formatted"
}

launch() {
  cd "$run"
  exec setsid env -i "$(mark kafka)" PATH="$PATH" LANG=C.UTF-8 TZ=UTC HOME="$run" \
    "${java[@]}" kafka.Kafka "$run/server.properties"
}

ready() { listening "$port"; }
