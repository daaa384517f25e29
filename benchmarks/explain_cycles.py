"""How much explanations delay cycles: 5,000 nodes, 10,000 waiting pods, cycles with and without reasons being found.

python benchmarks/explain_cycles.py [NODES] [WAITING] [CYCLES]

Reasons are found in another thread at the rhythm of scheduler.service.waiting_reasons: after each question a pause of
many times its duration. Ten cycles with it and ten without it alternate, so that both have the same machine. Printed
are the mean time of a cycle of each kind, and the processor time that the questions took.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from itertools import cycle as endlessly

from explain import NOW, a_job, objects

from volcano.api import core
from volcano.app.job_expansion import expand_job
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.cache import Batch, Cache, CacheSettings
from volcano.scheduler.explain.questions_asked import read_question
from volcano.scheduler.explain.trials import TrialRules
from volcano.scheduler.framework.config import default_config
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance
from volcano.scheduler.service.explaining import Expander, answered
from volcano.scheduler.service.waiting_reasons import SHARE_OF_TIME


class ReasonThread:
    """Asks about one waiting job after the other while it is switched on."""

    def __init__(self, batch: Batch) -> None:
        self._snapshot = Cache(CacheSettings()).refresh(batch, NOW, "explain")
        self._pods = [each for each in batch.objects.values() if isinstance(each, core.Pod)]
        self._rules = TrialRules(default_config(ACTIONS))
        self._expander = Expander(expand_job, [], CacheSettings(), NOW)
        self.is_on, self.ends = threading.Event(), threading.Event()
        self.questions, self.seconds = 0, 0.0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for number in endlessly(range(1000)):
            while not self.is_on.wait(0.05):
                if self.ends.is_set():
                    return
            body = {"kind": "vcjob", "name": f"w{number}", "object": a_job(f"w{number}", "8")}
            question = read_question({**body, "changes": False, "details": False})
            begun, used = time.monotonic(), time.thread_time()
            answered(question, self._snapshot, self._rules, self._pods, self._expander, NOW)
            self.questions, self.seconds = self.questions + 1, self.seconds + time.thread_time() - used
            if self.ends.wait((time.monotonic() - begun) * (1 - SHARE_OF_TIME) / SHARE_OF_TIME):
                return

    def close(self) -> None:
        self.ends.set()
        self._thread.join()


def main() -> None:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    waiting = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    cycles = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    found = objects(nodes, waiting)
    snapshot = Cache(CacheSettings()).refresh(Batch(dict(found)), NOW, "benchmark")
    config = default_config(ACTIONS)
    reasons = ReasonThread(Batch(dict(found)))
    times: dict[bool, list[float]] = {True: [], False: []}
    cycle(snapshot, config, SeededChance(0))  # warm
    begun, used = time.monotonic(), time.process_time()
    try:
        for number in range(cycles):
            is_asked = number // 10 % 2 == 1  # ten in a row, so that questions and their pauses fit in
            (reasons.is_on.set if is_asked else reasons.is_on.clear)()
            started = time.perf_counter()
            cycle(snapshot, config, SeededChance(number))
            times[is_asked].append(time.perf_counter() - started)
    finally:
        reasons.close()
    total, wall = time.process_time() - used, time.monotonic() - begun
    plain, asked = statistics.mean(times[False]), statistics.mean(times[True])
    print(f"{nodes} nodes, {waiting} waiting pods, {cycles} cycles in {wall:.0f} s; {reasons.questions} questions")
    print(f"a cycle takes {plain * 1000:.0f} ms, with questions {asked * 1000:.0f} ms: {asked / plain - 1:+.1%}")
    print(f"questions took {reasons.seconds:.1f} s of {total / 2:.1f} s of processor time of those cycles")


if __name__ == "__main__":
    main()
