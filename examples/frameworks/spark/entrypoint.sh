#!/usr/bin/env bash
# What the image apache/spark runs, for the Spark that pip installs (its wheel has no images): the driver of an application in
# cluster mode, or an executor. Spark gives the role as the first argument and the rest in the variables that it sets on pods.
set -euo pipefail

spark_home=$(cd "$(dirname "${BASH_SOURCE[0]}")" && ./bin/python -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
environment=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export SPARK_HOME=$spark_home PATH="$environment/bin:$PATH"
export PYSPARK_PYTHON=${PYSPARK_PYTHON:-$environment/bin/python} PYSPARK_DRIVER_PYTHON=${PYSPARK_DRIVER_PYTHON:-$environment/bin/python}

role=${1:-}
shift || true
case "$role" in
driver)
    exec "$spark_home/bin/spark-submit" --deploy-mode client \
        --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
        --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" "$@"
    ;;
executor)
    mapfile -t options < <(env | sed -n 's/^SPARK_JAVA_OPT_[0-9]*=//p')
    exec java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
        -cp "${SPARK_CONF_DIR:-/opt/spark/conf}:$spark_home/jars/*" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
        --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
        --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
*)
    exec "$role" "$@"
    ;;
esac
