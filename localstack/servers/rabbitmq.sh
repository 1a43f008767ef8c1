# SPDX-License-Identifier: Apache-2.0

# RabbitMQ from Debian's packages, unpacked and never installed: no service starts, nothing outside the folder changes.
# Sourced by start.sh.

port=5672 limit=120

home=$LULL_E2E/rabbitmq

prepare() {
  installed RabbitMQ "$home/usr/lib/rabbitmq/bin/rabbitmq-server" rabbitmq
  if [ "$fresh" = yes ]; then
    rm -rf "$run/data"
  fi
  mkdir -p "$run/data" "$run/home"
  echo '[].' >"$run/plugins"
  # No more disk than a test needs is asked for, and no more memory than a tenth of the machine's.
  cat >"$run/rabbitmq.conf" <<CONF
listeners.tcp.default = 127.0.0.1:$port
disk_free_limit.absolute = 50MB
vm_memory_high_watermark.relative = 0.1
log.console = true
log.file = false
CONF
}

# Three ports, all on loopback: AMQP, Erlang's distribution, and epmd, which tells nodes of each other.
launch() {
  cd "$run/home"
  exec setsid env -i "$(mark rabbitmq)" PATH="$home/usr/lib/erlang/bin:$PATH" LANG=C.UTF-8 HOME="$run/home" \
    ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=$((port + 2)) \
    RABBITMQ_HOME="$(echo "$home"/usr/lib/rabbitmq/lib/rabbitmq_server-*)" RABBITMQ_NODENAME="lull$port@localhost" \
    RABBITMQ_CONF_ENV_FILE=/dev/null RABBITMQ_CONFIG_FILE="$run/rabbitmq" RABBITMQ_ENABLED_PLUGINS_FILE="$run/plugins" \
    RABBITMQ_MNESIA_BASE="$run/data" RABBITMQ_PID_FILE="$run/erlang-pid" RABBITMQ_LOG_BASE="$run" RABBITMQ_LOGS=- \
    RABBITMQ_DIST_PORT=$((port + 1)) RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT="$port" \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none' \
    "$home"/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server
}

# RabbitMQ answers a client that speaks another protocol with its own name, once it takes clients.
ready() {
  (exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'GET / HTTP' >&3 && read -r -t 4 -n 4 answer <&3 && [ "$answer" = AMQP ]) 2>/dev/null
}
