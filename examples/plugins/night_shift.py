"""night-shift: jobs in a queue annotated `example.com/night-shift: "true"` start only between 20:00 and 06:00 UTC."""

from volcano.api.jobs.why import ENQUEUE, Why
from volcano.scheduler.framework.answers import Vote
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.model import Job


class NightShift(Plugin):
    name = "night-shift"
    argument_names = frozenset({"from", "until"})

    def job_enqueueable(self, job: Job) -> Vote:
        if self.session.queues[job.queue].annotations.get("example.com/night-shift") != "true":
            return Vote.ABSTAIN
        begins, ends = self.arguments.integer("from", 20), self.arguments.integer("until", 6)
        if self.session.now.hour >= begins or self.session.now.hour < ends:
            return Vote.ABSTAIN
        self.session.record.refuse(job.id, Why(ENQUEUE, f"waits for the night shift at {begins}:00", self.name))
        return Vote.REJECT
