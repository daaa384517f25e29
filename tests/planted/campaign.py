"""Plant causes by seed, ask for the explanation, apply the first change, and print which cause was taken for which.

python -m tests.planted.campaign 1000          # seeds 0 to 999; the exit code is 1 when one was explained wrongly
python -m tests.planted.campaign 1000 --quiet  # only the sums
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from tests.planted.causes import CAUSES, Expected, background
from tests.planted.obstacles import OBSTACLES
from tests.planted.plain_cluster import PlainCluster
from volcano.api.why.answers import WhyAnswer
from volcano.api.why.tiers import Tier

MAX_COLUMNS = 200
INTERNAL_WORDS = ("pipelined", "predicate", "session", "snapshot", "podgroup's")


@dataclass
class Outcome:
    """Of one seed: what was planted, what was said, and everything that is wrong with the answer."""

    seed: int
    planted: str
    expected: Expected
    answer: WhyAnswer
    wrong: list[str] = field(default_factory=list)


def plant(seed: int) -> tuple[str, Expected, PlainCluster]:
    """The cause changes with every seed, the cluster is drawn from it."""
    rng = Random(seed)
    names = sorted(CAUSES)
    name = names[seed % len(names)]
    cluster = background(rng)
    return name, CAUSES[name](rng, cluster), cluster


def outcome_of(seed: int) -> Outcome:
    name, expected, cluster = plant(seed)
    answer = cluster.explain(kind=expected.kind)
    outcome = Outcome(seed, name, expected, answer)
    if answer.reason != expected.reason:
        outcome.wrong.append(f"reason {answer.reason} instead of {expected.reason}: {answer.text}")
    if answer.tier != expected.tier:
        outcome.wrong.append(f"tier {answer.tier!r} instead of {str(expected.tier)!r}")
    for fact, value in expected.facts.items():
        if answer.facts.get(fact) != value:
            outcome.wrong.append(f"{fact} is {answer.facts.get(fact)!r} instead of {value!r}: {answer.text}")
    if len(answer.text) > MAX_COLUMNS or any(word in answer.text for word in INTERNAL_WORDS):
        outcome.wrong.append(f"text: {answer.text}")
    if expected.change and not answer.changes:
        outcome.wrong.append("no change is offered")
    if answer.changes and answer.reason == expected.reason:
        cluster.apply(answer.changes[0])
        if expected.runs and cluster.run_cycles() < expected.least:
            outcome.wrong.append(f"it does not run after the change: {answer.changes[0].sentence}")
    return outcome


def outcomes_behind_obstacles(seed: int) -> list[Outcome]:
    """The same cause beside an obstacle that ends by itself: the cause comes first, and changes are offered as before.

    Only of causes of the job itself that need a change; the others are such obstacles themselves.
    """
    found = []
    for obstacle in OBSTACLES:
        name, expected, cluster = plant(seed)
        is_own = expected.kind == "vcjob" and not expected.of_others
        if not is_own or expected.tier not in (Tier.YOU, Tier.ADMINISTRATOR):
            break
        obstacle(cluster)
        answer = cluster.explain()
        outcome = Outcome(seed, f"{name}, {obstacle.__name__}", expected, answer)
        if answer.reason != expected.reason:
            outcome.wrong.append(f"reason {answer.reason} instead of {expected.reason}: {answer.text}")
        if expected.change and not answer.changes:
            outcome.wrong.append("no change is offered")
        found.append(outcome)
    return found


def runs_at_once(seed: int) -> tuple[WhyAnswer, int]:
    """No cause at all: a job that fits. What is said about it, and how many of its pods run."""
    from tests.planted.plain_cluster import a_job

    rng = Random(seed)
    cluster = background(rng)
    pods = rng.randint(1, 4)
    least = rng.randint(1, pods)
    job = a_job(pods, {"cpu": "1", "memory": "100Mi"}, least=least)
    cluster.submit(job, phase=rng.choice(["Pending", "Inqueue"]), pods=rng.random() < 0.7)
    answer = cluster.explain()
    return answer, cluster.run_cycles()


def confusion(outcomes: list[Outcome]) -> str:
    """A row for each planted cause: how often, how often right, and what was said instead."""
    lines = [f"{'planted':45} {'seeds':>5} {'right':>5}  said"]
    for name in sorted(CAUSES):
        mine = [each for each in outcomes if each.planted == name]
        if mine:
            said = Counter(each.answer.reason for each in mine)
            right = sum(not each.wrong for each in mine)
            told = ", ".join(f"{reason} {count}" for reason, count in said.most_common())
            lines.append(f"{name:45} {len(mine):>5} {right:>5}  {told}")
    total = sum(not each.wrong for each in outcomes)
    return "\n".join([*lines, f"{len(outcomes)} planted, {total} explained rightly, {len(CAUSES)} kinds of causes"])


def main() -> int:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    outcomes = [outcome_of(seed) for seed in range(seeds)]
    for outcome in outcomes:
        if outcome.wrong and "--quiet" not in sys.argv:
            print(f"seed {outcome.seed} {outcome.planted}: {'; '.join(outcome.wrong)}")
    print(confusion(outcomes))
    behind = [each for seed in range(seeds) for each in outcomes_behind_obstacles(seed)]
    wrong = [each for each in behind if each.wrong]
    for outcome in wrong if "--quiet" not in sys.argv else ():
        print(f"seed {outcome.seed} {outcome.planted}: {'; '.join(outcome.wrong)}")
    print(f"{len(behind)} planted behind an obstacle that ends by itself, {len(behind) - len(wrong)} explained rightly")
    refused = [seed for seed in range(seeds) if not Tier(runs_at_once(seed)[0].tier).waiting_helps]
    print(f"{seeds} jobs that fit: {len(refused)} are said to need a change {refused[:5] or ''}".rstrip())
    return 1 if refused or wrong or any(each.wrong for each in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
