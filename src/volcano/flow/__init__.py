"""Write a DAG of jobs in Python. It makes nothing but ordinary JobTemplate and JobFlow objects.

from volcano.flow import Flow

flow = Flow("train")
prepare = flow.command("prepare", ["sh", "-c", "echo ready"])
shards = [flow.call(f"shard-{i}", "statistics:fmean", [i, i + 1]) for i in range(3)]
report = flow.command("report", ["echo", "done"])
prepare >> shards >> report

results = flow.submit().wait()
print(results["shard-0"])        # 0.5
"""

from volcano.flow.flow import Flow, FlowError, Step, Steps
from volcano.flow.running import FlowFailed, RunningFlow

__all__ = ["Flow", "FlowError", "FlowFailed", "RunningFlow", "Step", "Steps"]
