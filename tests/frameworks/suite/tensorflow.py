"""TensorFlow: MultiWorkerMirroredStrategy on two workers."""

from tests.frameworks.framework import Framework

FRAMEWORK = Framework("tensorflow", megabytes=300)
