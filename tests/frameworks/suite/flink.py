"""Flink: a session cluster as a gang, on which WordCount runs."""

from tests.frameworks.framework import Framework

FRAMEWORK = Framework("flink", megabytes=110, programs=("java=openjdk-17-jre-headless", "mvn=maven"), run_seconds=500)
