"""As which user a container runs and what it may do."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from volcano.api.kubelet import AgentPod
from volcano.embedded.agent.containers.environment import Missing
from volcano.embedded.agent.kernel.linux import CAPABILITIES, CONTAINER_CAPABILITIES
from volcano.embedded.agent.runtime.container_rights import ContainerRights, rights_of


def rights(shared: dict[str, Any] | None = None, **own: Any) -> ContainerRights:
    spec = {"containers": [{"name": "main", "securityContext": own}], "securityContext": shared or {}}
    pod = msgspec.convert({"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": spec}, AgentPod)
    return rights_of(pod, pod.spec.containers[0])


@pytest.mark.parametrize(
    ("shared", "own", "says"),
    [
        ({"runAsUser": 0}, {"runAsNonRoot": True}, "runAsUser breaks non-root policy"),
    ],
)
def test_a_container_that_must_not_be_root_and_would_is_refused(shared, own, says: str):
    with pytest.raises(Missing, match=f'{says} \\(pod: "p_n\\(u\\)", container: main\\)'):
        rights(shared, **own)


def test_a_containers_setting_replaces_its_pods():
    assert rights({"runAsNonRoot": True}, runAsNonRoot=False).uid is None
    assert rights({"runAsNonRoot": True, "runAsUser": 0}, runAsUser=7).uid == 7


def test_capabilities_are_the_usual_ones_with_those_dropped_and_added():
    assert set(rights().capabilities) == CONTAINER_CAPABILITIES
    assert rights(capabilities={"drop": ["ALL"]}).capabilities == []
    only = rights(capabilities={"drop": ["all"], "add": ["CAP_NET_ADMIN"]}).capabilities
    assert [CAPABILITIES[number] for number in only] == ["NET_ADMIN"]
    with pytest.raises(Missing, match="unknown capability 'FLY'"):
        rights(capabilities={"add": ["FLY"]})


def test_the_filter_of_calls_is_set_unless_the_pod_may_do_without():
    assert rights().refuses_calls and rights(seccompProfile={"type": "RuntimeDefault"}).refuses_calls
    assert not rights(seccompProfile={"type": "Unconfined"}).refuses_calls
    assert not rights(privileged=True).refuses_calls
    with pytest.raises(Missing, match="Localhost"):
        rights({"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}})


def test_rights_of_set_uid_programs_can_be_given_up():
    assert not rights().no_new_privileges
    assert rights(allowPrivilegeEscalation=False).no_new_privileges


def test_a_default_user_is_for_containers_that_state_none():
    def found(shared: dict[str, Any] | None = None, **own: Any) -> tuple[int | None, int | None]:
        spec = {"containers": [{"name": "main", "securityContext": own}], "securityContext": shared or {}}
        pod = msgspec.convert({"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": spec}, AgentPod)
        rights = rights_of(pod, pod.spec.containers[0], (65534, 65533))
        return rights.uid, rights.gid

    assert found() == (65534, 65533)
    assert found(runAsNonRoot=True) == (65534, 65533)
    assert found(runAsGroup=5) == (65534, 5)
    assert found({"runAsUser": 0}) == (0, 0)
    assert found(runAsUser=7) == (7, 0)
    assert found(privileged=True) == (None, None)


@pytest.mark.parametrize("stated", [({"runAsNonRoot": True}, {}), ({}, {"runAsNonRoot": True})])
def test_a_container_that_must_not_be_root_and_states_no_user_has_none_of_roots_rights(stated):
    pod, own = stated
    found = rights(pod, **own)

    assert (found.uid, found.capabilities, found.no_new_privileges) == (None, [], True)
