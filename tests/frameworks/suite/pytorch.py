"""PyTorch: torchrun and DistributedDataParallel on three pods."""

from tests.frameworks.framework import Framework

FRAMEWORK = Framework("pytorch", megabytes=3000)
