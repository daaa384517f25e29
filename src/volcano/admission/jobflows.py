"""/jobflows/validate: the steps of a flow and what they wait for must be a DAG."""

from __future__ import annotations

from volcano.admission.review import ALLOWED, Reader, ReviewAnswer, Settings, deny, read
from volcano.admission.submitters import submitter_problem
from volcano.api.dag import UnknownDependency, first_flaw
from volcano.api.flow import JobFlow
from volcano.machinery.admission import Attributes


def validate_jobflow(attributes: Attributes, _reader: Reader, settings: Settings) -> ReviewAnswer:
    flow = read(JobFlow, attributes.object)
    if isinstance(flow, ReviewAnswer):
        return flow
    if problem := submitter_problem(attributes, settings):
        return deny(problem)
    graph = {step.name: step.depends_on.targets if step.depends_on is not None else [] for step in flow.spec.flows}
    flaw = first_flaw(graph)
    if flaw is None:
        return ALLOWED
    if isinstance(flaw, UnknownDependency):
        return deny(f"jobflow Flow is not DAG: vertex is not defined: {flaw.target} (a dependency of {flaw.name})")
    return deny(f"jobflow Flow is not DAG: it has the cycle {flaw}")
