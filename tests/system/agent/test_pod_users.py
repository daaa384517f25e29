"""As whom pods of root's agent run: an unprivileged user who can work, unless they ask for root or another user."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import needs
from tests.system.agent.kit import a_pod
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt
from volcano.embedded.agent.containers.process_settings import UNPRIVILEGED_USER

pytestmark = [
    pytest.mark.root,
    needs.NAMESPACES,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can run pods as another user"),
]
NONROOT = str(UNPRIVILEGED_USER[0])


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder that only root may enter; not below /tmp, which every pod has its own of."""
    folder = Path(tempfile.mkdtemp(prefix="volcano-users-", dir="/var/lib"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


async def told(machine, name: str, script: str, **given) -> str:
    """What a shell in a pod prints."""
    await machine.create(a_pod(name, "sh", "-c", f"exec 2>&1; {script}", **given))
    await machine.finished(name)
    return await machine.output(name)


async def test_a_pod_that_states_no_user_runs_as_an_unprivileged_one_without_further_groups(machine):
    assert (await told(machine, "plain", "id -u; id -g; id -G; id -un")).split() == [NONROOT] * 3 + ["nonroot"]


@pytest.mark.parametrize(
    ("of_pod", "of_container"),
    [({"runAsUser": 0}, {}), ({}, {"runAsUser": 0}), ({}, {"privileged": True})],
    ids=["pod", "container", "privileged"],
)
async def test_root_is_for_those_who_ask(machine, of_pod, of_container):
    answer = await told(machine, "stated", "id -u", securityContext=of_pod, container={"securityContext": of_container})

    assert answer == "0"


async def test_the_flag_gives_root_to_all(machine):
    object.__setattr__(machine.runtime._settings, "default_user", None)

    assert await told(machine, "plain", "id -u; id -G") == "0\n0"


async def test_it_satisfies_run_as_non_root_and_gets_the_groups_it_asks_for(machine):
    context = {"runAsNonRoot": True, "fsGroup": 4242, "supplementalGroups": [4243]}

    answer = await told(machine, "groups", "id -u; id -G", securityContext=context)

    assert answer.split() == [NONROOT, NONROOT, "4243", "4242"] or {*answer.split()} == {NONROOT, "4242", "4243"}


async def test_it_can_write_where_programs_expect_to(machine):
    places = "/v /memory /part /tmp /var/tmp /run /dev/shm $HOME"
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "m", "emptyDir": {"medium": "Memory"}}]
    mounts = [{"name": "v", "mountPath": "/v"}, {"name": "m", "mountPath": "/memory"},
              {"name": "v", "mountPath": "/part", "subPath": "a/b"}]  # fmt: skip
    script = (
        f"for f in {places}; do echo x > $f/mine && rm $f/mine && mkdir $f/own && rmdir $f/own || echo not $f; done"
    )
    script += "; echo out > /dev/stdout; echo err > /dev/stderr; echo end > /dev/termination-log; pwd"

    answer = await told(machine, "writer", script, container={"volumeMounts": mounts}, volumes=volumes)

    assert answer.split() == ["out", "err", "/"]
    ended = (await machine.pod("writer"))["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["message"].strip() == "end"


async def test_the_top_of_its_working_folder_is_its_own(machine, closed):
    closed.chmod(0o755)
    (closed / "known").write_text("known")

    answer = await told(
        machine, "worker", "cat known; echo; echo new > new && cat new", container={"workingDir": str(closed)}
    )

    assert answer.split() == ["known", "new"]
    assert not (closed / "new").exists()


async def test_files_of_secrets_that_only_their_owner_may_read_are_its_own(machine):
    secret = {"kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "stringData": {"k": "key"}}
    await machine.create(secret)
    volumes = [{"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}}]
    mounts = {"volumeMounts": [{"name": "s", "mountPath": "/s"}]}

    plain = await told(machine, "plain", "cat /s/k; stat -c ' %a %u' /s/k", container=mounts, volumes=volumes)
    other = await told(machine, "other", "cat /s/k; stat -c ' %a %u' /s/k", container=mounts, volumes=volumes,
                       securityContext={"runAsUser": 1234})  # fmt: skip

    assert plain.split() == ["key", "400", NONROOT]
    assert other.split() == ["key", "400", "1234"]


async def test_a_command_that_is_run_later_is_the_same_users(machine):
    await machine.create(a_pod("sleeper", "sleep", "1000"))
    await machine.until_phase("sleeper", "Running")
    known = machine.agent.find("default", "sleeper")
    out, end = os.pipe()
    nothing = os.open("/dev/null", os.O_RDWR)

    script = "id -u; id -G; echo again > /dev/stdout; touch $HOME/file; stat -c %u $HOME/file"
    code = await machine.runtime.execute(
        ContainerAttempt(known.pod, "main", 0), ["sh", "-c", script], standard=[nothing, end, end]
    )
    os.close(end)

    with open(out) as answers:
        assert answers.read().split() == [NONROOT, NONROOT, "again", NONROOT]
    assert code == 0


async def test_what_others_may_not_enter_is_empty_but_for_the_programs_it_names(machine, closed):
    """Files that anyone may read are still closed to pods when a folder above them is."""
    (closed / "notes.txt").write_text("private notes")
    project = closed / "project"
    making = [sys.executable, "-m", "venv", "--without-pip", str(project / "venv")]
    await asyncio.to_thread(subprocess.run, making, check=True)
    (project / "plan.txt").write_text("private plan")
    script = f"{project}/venv/bin/python -c 'import sys; print(sys.prefix)'; find {closed} -maxdepth 2; cat {project}/plan.txt {closed}/notes.txt"

    answer = await told(machine, "named", script)
    other = await told(machine, "other", f"ls {closed}; true")

    assert str(project / "venv") in answer.splitlines()[0]
    assert "private" not in answer
    assert answer.splitlines()[1:4] == [str(closed), str(project), str(project / "venv")]
    assert "Permission denied" in other


async def test_this_interpreter_runs_wherever_it_lies_and_the_home_around_it_stays_closed(machine):
    answer = await told(
        machine, "python", f"{sys.executable} -c 'import volcano; print(1)'; ls -A ~ | wc -l; ls -A /root"
    )

    lines = answer.splitlines()
    assert lines[0] == "1"
    assert not {".bashrc", ".profile", ".cache", ".config"} & {*lines[2:]}


async def test_a_folder_that_is_made_for_it_is_its_own_and_one_of_root_is_not(machine, closed):
    closed.chmod(0o755)
    (closed / "roots").mkdir()
    volumes = [
        {"name": "made", "hostPath": {"path": str(closed / "made"), "type": "DirectoryOrCreate"}},
        {"name": "roots", "hostPath": {"path": str(closed / "roots")}},
    ]
    mounts = [{"name": "made", "mountPath": "/made"}, {"name": "roots", "mountPath": "/roots"}]

    answer = await told(machine, "host", "echo x > /made/x && echo made; echo x > /roots/x; true",
                        container={"volumeMounts": mounts}, volumes=volumes)  # fmt: skip

    assert answer.splitlines()[0] == "made"
    assert "Permission denied" in answer
    assert (closed / "made" / "x").stat().st_uid == UNPRIVILEGED_USER[0]


async def test_a_volume_within_a_closed_folder_can_be_reached(machine, closed):
    work = closed / "work"
    work.mkdir()
    work.chmod(0o777)
    volumes = [{"name": "w", "hostPath": {"path": str(work)}}]
    mounts = [{"name": "w", "mountPath": str(work)}]

    answer = await told(machine, "inner", f"cd {work} && echo x > x && ls {closed}",
                        container={"volumeMounts": mounts, "workingDir": str(work)}, volumes=volumes)  # fmt: skip

    assert answer == "work"
    assert (work / "x").read_text() == "x\n"


async def test_a_working_folder_that_it_may_not_enter_is_named(machine, closed):
    await machine.create(a_pod("lost", "true", container={"workingDir": str(closed)}))

    pod = await machine.finished("lost")

    message = pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"]
    assert message == f"working folder {closed}: Permission denied"


async def test_a_read_only_root_has_a_home_that_cannot_be_written(machine):
    answer = await told(machine, "fixed", "cd; touch file || echo refused", container={"securityContext": {"readOnlyRootFilesystem": True}})  # fmt: skip

    assert answer.splitlines()[-1] == "refused"


async def test_the_node_says_as_whom_pods_run(machine):
    assert machine.runtime.annotations["agent.volcano.sh/default-user"] == NONROOT
