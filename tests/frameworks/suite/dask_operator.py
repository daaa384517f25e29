"""Dask's operator, as its Helm chart installs it: a DaskJob whose workers connect through a Service."""

from tests.frameworks.framework import Framework

FRAMEWORK = Framework("dask-operator", megabytes=60, programs=("helm",), run_seconds=600)
