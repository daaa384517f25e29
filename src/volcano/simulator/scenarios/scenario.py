"""A scenario file becomes what a comparison runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from volcano.api import core, scheduling
from volcano.api.bounded_yaml import BoundedYamlError, load_yaml
from volcano.api.meta import ObjectMeta
from volcano.api.quantity import parse_quantity
from volcano.simulator.clusters import DEFAULT_QUEUE, default_queues
from volcano.simulator.comparison import PolicyComparison
from volcano.simulator.draws import Draws
from volcano.simulator.fields import Fields, InvalidScenario
from volcano.simulator.jobs import Role, WorkloadJob
from volcano.simulator.network import NetworkModel, TrafficPattern
from volcano.simulator.policies import InvalidPolicy, SchedulingPolicy, read_policy, shipped_policy
from volcano.simulator.scenarios.cluster import SimulatedCluster, read_cluster
from volcano.simulator.workloads.arrivals import MAX_GENERATED_JOBS, arrival_times, draw_seconds
from volcano.simulator.workloads.history import read_history
from volcano.simulator.workloads.openb import InvalidTrace, read_openb_pods
from volcano.simulator.workloads.swf import UnreadableLines, WorkloadTrace, read_swf
from volcano.simulator.workloads.vcjobs import ManifestReader, job_of, renamed

MAX_SCENARIO_BYTES: Final = 3 * 1024 * 1024
FAILURE_HORIZON_SECONDS: Final = 30 * 86_400.0
"""Random failures go on for so long after the last submission, unless `until` ends the simulation before."""


@dataclass(slots=True)
class Scenario:
    name: str
    seed: int
    until: float | None
    cluster: SimulatedCluster
    queues: list[scheduling.Queue]
    priority_classes: list[core.PriorityClass]
    jobs: list[WorkloadJob]
    policies: list[SchedulingPolicy]
    network: NetworkModel | None = None
    unreadable: UnreadableLines = field(default_factory=UnreadableLines)
    expectations: list[str] = field(default_factory=list)


def read_scenario(path: Path) -> Scenario:
    """InvalidScenario with the file, the path of the field and the reason."""
    try:
        with path.open("rb") as opened:
            content = opened.read(MAX_SCENARIO_BYTES + 1)
        if len(content) > MAX_SCENARIO_BYTES:
            raise InvalidScenario(f"larger than {MAX_SCENARIO_BYTES} bytes")
        return scenario_from(load_yaml(content.decode()), path.parent, default_name=path.stem)
    except OSError as error:
        raise InvalidScenario(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidScenario(f"{path}: not UTF-8 text") from error
    except BoundedYamlError as error:
        raise InvalidScenario(f"{path}: not YAML: {error}") from error
    except InvalidScenario as error:
        raise InvalidScenario(f"{path}: {error}") from error


def scenario_from(document: Any, folder: Path, *, default_name: str = "scenario") -> Scenario:
    fields = Fields(document, "")
    seed, until = fields.integer("seed", 0), fields.seconds("until", None)
    queues = [_queue(path, entry) for path, entry in fields.items("queues")]
    queues += [queue for queue in default_queues() if queue.name not in {each.name for each in queues}]
    classes = [_priority_class(Fields(entry, path)) for path, entry in fields.items("priorityClasses")]
    reader = WorkloadReader(folder, queues, classes, Draws(seed))
    for path, entry in fields.items("workload"):
        reader.add(Fields(entry, path))
    if not reader.jobs:
        raise InvalidScenario("workload: no job is given")
    last = max(job.submit for job in reader.jobs)
    horizon = until if until is not None else last + FAILURE_HORIZON_SECONDS
    cluster = read_cluster(fields.fields("cluster"), folder, seed, horizon)
    scenario = Scenario(
        name=fields.text("name", default_name),
        seed=seed,
        until=until,
        cluster=cluster,
        queues=queues,
        priority_classes=classes,
        jobs=reader.jobs,
        policies=_policies(fields, folder),
        network=_network(fields, cluster, reader.traffic),
        unreadable=reader.unreadable,
        expectations=[str(entry) for _, entry in fields.items("expect")],
    )
    fields.raw("found", None)
    fields.done()
    return scenario


def comparison_of(scenario: Scenario) -> PolicyComparison:
    return PolicyComparison(
        scenario.cluster.nodes,
        scenario.jobs,
        scenario.unreadable,
        scenario.seed,
        scenario.queues,
        scenario.priority_classes,
        scenario.cluster.hypernodes,
        scenario.cluster.changes,
        scenario.network,
        scenario.until,
    )


# -- queues, priorities, policies -------------------------------------------------------------------------------------
def _queue(path: str, entry: Any) -> scheduling.Queue:
    """`{name: research, weight: 2}`: any field of a Queue's spec; or a whole Queue."""
    fields = Fields(entry, path)
    if fields.has("metadata"):
        body = {**entry, "status": {"state": "Open"}}
    else:
        spec = {key: value for key, value in entry.items() if key != "name"}
        body = {"metadata": {"name": fields.text("name")}, "spec": spec, "status": {"state": "Open"}}
        known = {each.encode_name for each in msgspec.structs.fields(scheduling.QueueSpec)}
        for key in spec:
            if key not in known:
                raise InvalidScenario(f"{path}.{key}: is not a field of a Queue's spec")
    try:
        return msgspec.convert(body, scheduling.Queue, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidScenario(f"{path}: {error}") from error


def _priority_class(fields: Fields) -> core.PriorityClass:
    name, value = fields.text("name"), fields.integer("value", least=-(10**9))
    is_default = fields.flag("globalDefault")
    fields.done()
    return core.PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=is_default)


def _policies(fields: Fields, folder: Path) -> list[SchedulingPolicy]:
    found = [_policy(path, entry, folder) for path, entry in fields.items("policies")]
    if fields.has("policy"):
        found.append(_policy("policy", fields.raw("policy"), folder))
    names = [policy.name for policy in found]
    for name in names:
        if names.count(name) > 1:
            raise InvalidScenario(f"policies: two policies are named {name}")
    return found


def _policy(path: str, entry: Any, folder: Path) -> SchedulingPolicy:
    """A shipped one by name, `{name, conf: file}`, or `{name, configuration: text}`."""
    try:
        if isinstance(entry, str):
            return shipped_policy(entry)
        fields = Fields(entry, path)
        if fields.has("configuration"):
            name, text = fields.text("name"), fields.text("configuration")
        else:
            file = folder / fields.text("conf")
            name, text = fields.text("name", file.stem), file.read_text(encoding="utf-8")
        fields.done()
        return read_policy(name, text)
    except InvalidPolicy as error:
        raise InvalidScenario(f"{path}: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidScenario(f"{path}.conf: {error}") from error


def _network(fields: Fields, cluster: SimulatedCluster, traffic: dict[str, TrafficPattern]) -> NetworkModel | None:
    if not fields.has("network"):
        if traffic:
            raise InvalidScenario("network: is required where a job has traffic")
        return None
    of = fields.fields("network")
    model = NetworkModel(
        same_node=_rate(of, "sameNode"),
        same_rack=_rate(of, "sameRack"),
        across=_rate(of, "across"),
        racks=cluster.racks,
        traffic=traffic,
    )
    of.done()
    return model


def _rate(fields: Fields, key: str) -> float:
    found = float(parse_quantity(fields.quantity(key)))
    if found <= 0.0:
        raise InvalidScenario(f"{fields.at(key)}: must be above 0")
    return found


def _quantities(fields: Fields, key: str) -> dict[str, str]:
    names = fields.mapping(key)
    of = fields.fields(key)
    return {name: of.quantity(name) for name in names}


# -- workload ---------------------------------------------------------------------------------------------------------
class WorkloadReader:
    """Reads the entries of a workload: traces, histories, single jobs, generated ones."""

    def __init__(
        self,
        folder: Path,
        queues: list[scheduling.Queue],
        classes: list[core.PriorityClass],
        chance: Draws,
    ) -> None:
        self._folder, self._chance = folder, chance
        self._queues, self._classes = {queue.name for queue in queues}, {each.name for each in classes}
        self._manifests = ManifestReader(queues)
        self._names: set[str] = set()
        self.jobs: list[WorkloadJob] = []
        self.traffic: dict[str, TrafficPattern] = {}
        self.unreadable = UnreadableLines()

    def add(self, fields: Fields) -> None:
        if fields.has("trace") or fields.has("history"):
            self._add_trace(fields)
            return
        name = fields.text("name")
        moments = self._moments(fields)
        run_time, estimate = fields.raw("runTime", 0), fields.raw("estimate", None)
        traffic = _traffic(fields.fields("traffic")) if fields.has("traffic") else None
        least = _quantities(fields, "minResources") if fields.has("minResources") else None
        workers = fields.text("workers", "")
        make = self._maker(fields, name)
        fields.done()
        many = len(moments) > 1
        for index, moment in enumerate(moments):
            seconds = draw_seconds(run_time, fields.at("runTime"), self._chance)
            expected = self._estimate(estimate, seconds, fields.at("estimate"))
            job = make(f"{name}-{index}" if many else name, moment, seconds, expected)
            job = replace(job, min_resources=least, workers=workers)
            if workers and not job.all_workers:
                raise InvalidScenario(f"{fields.at('workers')}: the job has no role {workers}")
            self._keep(job, fields.path)
            if traffic is not None:
                self.traffic[job.name] = traffic

    def _estimate(self, stated: Any, run_time: float, path: str) -> float | None:
        """`exact`, a duration or one that is drawn; none where none is stated."""
        if stated is None or stated == "exact":
            return None if stated is None else run_time
        return draw_seconds(stated, path, self._chance)

    def _moments(self, fields: Fields) -> list[float]:
        if fields.has("arrivals"):
            return arrival_times(fields.fields("arrivals"), self._chance)
        count = fields.integer("count", 1, least=1, most=MAX_GENERATED_JOBS)
        return [fields.seconds("submit", 0.0)] * count

    def _maker(self, fields: Fields, name: str) -> Any:
        if fields.has("job"):
            manifest = self._manifests.read(fields.raw("job"), fields.at("job"), name)
            self._check(manifest.spec.queue, manifest.spec.priority_class_name, fields.at("job.spec"))

            def from_manifest(name: str, submit: float, run_time: float, estimate: float | None) -> WorkloadJob:
                return job_of(renamed(manifest, name), submit=submit, run_time=run_time, estimate=estimate)

            return from_manifest
        requests = {"cpu": fields.quantity("cpu", "1")}
        if fields.has("memory"):
            requests["memory"] = fields.quantity("memory")
        if fields.has("gpu"):
            requests["nvidia.com/gpu"] = fields.quantity("gpu")
        pods = fields.integer("pods", 1, least=1, most=100_000)
        least = fields.integer("minAvailable", pods, least=1, most=pods)
        queue, priority = fields.text("queue", DEFAULT_QUEUE), fields.text("priorityClassName", "")
        preemptable, selector = fields.flag("preemptable", True), fields.mapping("nodeSelector")
        self._check(queue, priority, fields.path)
        role = Role("task", pods, requests, spec={"nodeSelector": selector} if selector else {})

        def plain(name: str, submit: float, run_time: float, estimate: float | None) -> WorkloadJob:
            return WorkloadJob(
                name, submit, run_time, (role,), estimate, queue,
                priority_class=priority, min_available=least, preemptable=preemptable,
            )  # fmt: skip

        return plain

    def _check(self, queue: str, priority: str, path: str) -> None:
        if queue not in self._queues:
            raise InvalidScenario(
                f"{path}.queue: there is no queue {queue}; there are {', '.join(sorted(self._queues))}"
            )
        if priority and priority not in self._classes:
            raise InvalidScenario(f"{path}.priorityClassName: there is no PriorityClass {priority}")

    def _keep(self, job: WorkloadJob, path: str) -> None:
        if job.name in self._names:
            raise InvalidScenario(f"{path}.name: two jobs are named {job.name}")
        if len(self.jobs) >= MAX_GENERATED_JOBS:
            raise InvalidScenario(f"{path}: more than {MAX_GENERATED_JOBS} jobs")
        self._names.add(job.name)
        self.jobs.append(job)

    # -- traces -------------------------------------------------------------------------------------------------------
    def _add_trace(self, fields: Fields) -> None:
        queue = fields.text("queue", "")
        if queue:
            self._check(queue, "", fields.path)
        key = "trace" if fields.has("trace") else "history"
        file = self._folder / fields.text(key)
        first = fields.integer("first", 0)
        count = fields.integer("count", least=1) if fields.has("count") else None
        shape, exact = fields.text("shape", "gang"), fields.flag("exactEstimates")
        fields.done()
        try:
            if key == "history":
                trace = read_history(file, first=first, count=count)
            elif file.suffix == ".csv":
                trace = read_openb_pods(file, first=first, count=count)
            else:
                trace = read_swf(file, first=first, count=count, single_pod=shape == "pods=1", exact=exact)
        except InvalidTrace as error:
            raise InvalidScenario(f"{fields.at(key)}: {error}") from error
        except OSError as error:
            raise InvalidScenario(f"{fields.at(key)}: {file}: {error.strerror}") from error
        for job in _in_queue(trace, queue):
            self._check(job.queue, "", fields.path)
            self._keep(job, fields.path)
        self.unreadable.count += trace.unreadable.count
        self.unreadable.named += trace.unreadable.named


def _in_queue(trace: WorkloadTrace, queue: str) -> Iterator[WorkloadJob]:
    for job in trace.jobs:
        yield replace(job, queue=queue) if queue else job


def _traffic(fields: Fields) -> TrafficPattern:
    """`{steps: 1000, computePerStep: 100ms, between: [{roles: [ps, worker], bytes: 50M}]}`."""
    between = {}
    for path, entry in fields.items("between"):
        pair = Fields(entry, path)
        roles = pair.texts("roles")
        if len(roles) != 2:
            raise InvalidScenario(f"{path}.roles: must name two roles (the same twice for traffic within one)")
        between[roles[0], roles[1]] = float(parse_quantity(pair.quantity("bytes")))
        pair.done()
    pattern = TrafficPattern(fields.integer("steps", least=1), fields.seconds("computePerStep", 0.0), between)
    fields.done()
    return pattern
