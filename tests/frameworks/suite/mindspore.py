"""MindSpore: a scheduler and two workers that all-reduce on their CPUs."""

from tests.frameworks.framework import Framework

FRAMEWORK = Framework("mindspore", megabytes=900)
