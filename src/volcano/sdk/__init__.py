"""Submit jobs from Python and follow them: a program, a test or a notebook needs no YAML and no kubectl.

from volcano.sdk import Job, JobTask

job = Job("train", [JobTask("worker", ["python", "train.py"], replicas=4, cpu=2)])
running = job.submit()
running.wait()                      # JobFailed, with the reason, if it does not complete
print(running.logs()["train-worker-0"])

Objects that are read have the types of volcano.api. A graph of jobs is written with volcano.flow.
"""

from volcano.sdk.cluster import ClusterClient, queues
from volcano.sdk.job import Job, JobError, JobTask
from volcano.sdk.running import JobFailed, RunningJob

__all__ = ["ClusterClient", "Job", "JobError", "JobFailed", "JobTask", "RunningJob", "queues"]
