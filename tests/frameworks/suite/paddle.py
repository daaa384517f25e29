"""PaddlePaddle: two trainers that average their gradients with gloo."""

from tests.frameworks.framework import Framework

FRAMEWORK = Framework("paddle", megabytes=300)
