"""What pods ask for, as Kubernetes adds it up."""

from __future__ import annotations

import msgspec

from volcano.api.core import PodSpec
from volcano.api.pods.requests import added, pod_limits, pod_requests, template_usage, times, to_wire


def spec(**fields) -> PodSpec:
    return msgspec.convert(fields, PodSpec)


def container(requests: dict | None = None, limits: dict | None = None, **more) -> dict:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def test_containers_add_up_and_overhead_comes_on_top():
    pod = spec(containers=[container({"cpu": "1"}), container({"cpu": "500m"})], overhead={"cpu": "100m"})

    assert to_wire(pod_requests(pod)) == {"cpu": "1600m"}


def test_the_largest_init_container_counts_if_it_is_more():
    pod = spec(
        containers=[container({"cpu": "1", "memory": "1Gi"})],
        initContainers=[container({"cpu": "2"}), container({"memory": "512Mi"})],
    )

    assert to_wire(pod_requests(pod)) == {"cpu": "2", "memory": "1Gi"}


def test_sidecars_run_beside_the_containers_and_the_later_init_containers():
    pod = spec(
        containers=[container({"cpu": "1"})],
        initContainers=[
            container({"cpu": "2"}),
            container({"cpu": "1"}, restartPolicy="Always"),
            container({"cpu": "3"}),
        ],
    )

    assert to_wire(pod_requests(pod)) == {"cpu": "4"}


def test_overhead_is_a_limit_only_where_there_is_one():
    pod = spec(containers=[container(limits={"cpu": "1"})], overhead={"cpu": "1", "memory": "1Gi"})

    assert to_wire(pod_limits(pod)) == {"cpu": "2"}


def test_usage_of_the_job_in_the_end_to_end_suite():
    asked = {"cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1"}
    template = {"spec": {"containers": [container(asked, asked)]}}

    usage = to_wire(times(added(template_usage(template)), 2))

    assert usage == {
        "count/pods": "2",
        "cpu": "2",
        "limits.cpu": "2",
        "limits.memory": "2000Mi",
        "memory": "2000Mi",
        "nvidia.com/gpu": "2",
        "pods": "2",
        "requests.cpu": "2",
        "requests.memory": "2000Mi",
        "requests.nvidia.com/gpu": "2",
    }


def test_limits_do_not_imply_requests_and_strange_names_do_not_count():
    template = {"spec": {"containers": [container({"kubernetes.io/batch-cpu": 1}, {"cpu": "1"})]}}

    assert to_wire(template_usage(template)) == {"count/pods": "1", "limits.cpu": "1", "pods": "1"}
