#!/usr/bin/env bash
# What the image `flink` runs, for Flink as Maven fetches it: `jobmanager`, `taskmanager`, or Flink's command line (`run`, `list`, …).
# $FLINK_PROPERTIES has the configuration, as for the image.
set -euo pipefail

home=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
export FLINK_CONF_DIR=${TMPDIR:-/tmp}/flink-conf
mkdir -p "$FLINK_CONF_DIR"
printf '%s\n' "${FLINK_PROPERTIES:-}" >"$FLINK_CONF_DIR/config.yaml"
cat >"$FLINK_CONF_DIR/log4j2.properties" <<'END'
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = Console
appender.console.type = Console
appender.console.name = Console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %c - %m%n
END

opens=()
for package in java.base/java.lang java.base/java.net java.base/java.io java.base/java.nio java.base/java.text java.base/java.time java.base/java.util \
    java.base/java.util.concurrent java.base/java.util.concurrent.atomic java.base/java.util.concurrent.locks java.base/java.lang.reflect \
    java.base/java.lang.invoke java.base/sun.nio.ch java.base/sun.net.util; do
    opens+=(--add-opens "$package=ALL-UNNAMED")
done
start() { exec java "${opens[@]}" -Xmx"$1" -Dlog4j2.configurationFile="$FLINK_CONF_DIR/log4j2.properties" -cp "$home/lib/*" "${@:2}"; }

case "${1:-}" in
jobmanager)
    start 256m org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint --configDir "$FLINK_CONF_DIR" --executionMode cluster \
        -D jobmanager.bind-host=0.0.0.0 -D rest.bind-address=0.0.0.0 \
        -D jobmanager.memory.heap.size=256m -D jobmanager.memory.off-heap.size=128m
    ;;
taskmanager)
    start 256m org.apache.flink.runtime.taskexecutor.TaskManagerRunner --configDir "$FLINK_CONF_DIR" \
        -D taskmanager.host="$(hostname -i)" -D taskmanager.bind-host=0.0.0.0 -D taskmanager.cpu.cores=1 \
        -D taskmanager.memory.task.heap.size=128m -D taskmanager.memory.framework.heap.size=64m -D taskmanager.memory.framework.off-heap.size=64m \
        -D taskmanager.memory.task.off-heap.size=0 \
        -D taskmanager.memory.network.min=32m -D taskmanager.memory.network.max=32m -D taskmanager.memory.managed.size=32m \
        -D taskmanager.memory.jvm-metaspace.size=128m -D taskmanager.memory.jvm-overhead.min=64m -D taskmanager.memory.jvm-overhead.max=64m
    ;;
*)
    start 256m org.apache.flink.client.cli.CliFrontend "$@"
    ;;
esac
