"""As which user a container runs and what it may do: its securityContext together with its pod's. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from volcano.api.kubelet import AgentContainer, AgentPod
from volcano.embedded.agent.containers.environment import Missing
from volcano.embedded.agent.kernel.linux import CAPABILITIES, CONTAINER_CAPABILITIES

SECCOMP_PROFILES: Final = ("", "RuntimeDefault", "Unconfined")
ALL: Final = "ALL"
User = tuple[int, int]
"""The numbers of a user and of its group."""


class ContainerRights(msgspec.Struct, frozen=True):
    """The user (None: the one that starts pods), its groups, and the rights of its processes."""

    uid: int | None
    gid: int | None
    groups: list[int] | None
    privileged: bool
    capabilities: list[int]
    no_new_privileges: bool
    refuses_calls: bool
    read_only_root: bool


def user_of(pod: AgentPod, container: AgentContainer, default_user: User | None) -> tuple[int | None, int | None]:
    """User and group: those that container or pod state, else the default ones; None: those of the agent."""
    own, shared = container.security_context, pod.spec.security_context
    uid = own.run_as_user if own.run_as_user is not None else shared.run_as_user
    gid = own.run_as_group if own.run_as_group is not None else shared.run_as_group
    if uid is None and default_user is not None and not own.privileged:
        return default_user[0], gid if gid is not None else default_user[1]
    return uid, gid if gid is not None or uid is None else 0


def file_owner(pod: AgentPod, default_user: User | None) -> User | None:
    """Who owns the files that the agent makes for a pod: the one user of its containers, else the default one.

    None: the agent. A key that only its owner may read would be of no use to a container that runs as another user.
    """
    users = {user_of(pod, container, default_user) for container in pod.all_containers}
    uid, gid = next(iter(users)) if len(users) == 1 else default_user or (None, None)
    return (uid, gid or 0) if uid else None


def rights_of(pod: AgentPod, container: AgentContainer, default_user: User | None = None) -> ContainerRights:
    """The user is the one that container or pod states, else the default one.

    An image that states a user does not exist here. So a container that must not run as root and states no user runs as
    the agent's, without any of root's rights. Missing when it states root, or wants a profile that this node lacks.
    """
    own, shared = container.security_context, pod.spec.security_context
    uid, gid = user_of(pod, container, default_user)
    groups = [*shared.supplemental_groups, *([shared.fs_group] if shared.fs_group is not None else [])]
    must_not_be_root = own.run_as_non_root if own.run_as_non_root is not None else bool(shared.run_as_non_root)
    if must_not_be_root and uid == 0:
        where = f'(pod: "{pod.name}_{pod.namespace}({pod.uid})", container: {container.name})'
        raise Missing(f"container's runAsUser breaks non-root policy {where}")
    loses_rights = must_not_be_root and uid is None
    profile = own.seccomp_profile or shared.seccomp_profile
    kind = profile.type if profile is not None else ""
    if kind not in SECCOMP_PROFILES:
        raise Missing(f"seccompProfile {kind!r}: this node has {', '.join(filter(None, SECCOMP_PROFILES))} only")
    return ContainerRights(
        uid=uid,
        gid=gid,
        groups=groups if uid is not None or groups else None,
        privileged=own.privileged,
        capabilities=[] if loses_rights else sorted(_capabilities(container)),
        no_new_privileges=(own.allow_privilege_escalation is False or loses_rights) and not own.privileged,
        refuses_calls=kind != "Unconfined" and not own.privileged and "SYS_ADMIN" not in _names(own.capabilities.add),
        read_only_root=own.read_only_root_filesystem,
    )


def _capabilities(container: AgentContainer) -> set[int]:
    wanted = container.security_context.capabilities
    added, dropped = _names(wanted.add), _names(wanted.drop)
    unknown = sorted((added | dropped) - {*CAPABILITIES, ALL})
    if unknown:
        raise Missing(f"unknown capability {unknown[0]!r}")
    every = range(len(CAPABILITIES))
    kept = set() if ALL in dropped else {each for each in CONTAINER_CAPABILITIES if CAPABILITIES[each] not in dropped}
    return kept | {each for each in every if ALL in added or CAPABILITIES[each] in added}


def _names(given: list[str]) -> set[str]:
    return {name.upper().removeprefix("CAP_") for name in given}
