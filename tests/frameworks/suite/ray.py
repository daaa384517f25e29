"""Ray: head and workers by the plugin, a job by `ray job submit`."""

from tests.frameworks.framework import Framework

FRAMEWORK = Framework("ray", megabytes=150)
