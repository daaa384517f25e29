"""Which pods are given a token, and where in them it is."""

from __future__ import annotations

import pytest

from tests.unit.embedded.agent.kit import a_pod
from volcano.embedded.agent.storage.service_account import TOKEN_FOLDER, wants_token, with_token
from volcano.embedded.agent.storage.volume_files import needed_by, token_life


@pytest.mark.parametrize(
    ("pod_says", "account_setting", "expected"),
    [
        (None, None, True),
        (None, False, False),
        (None, True, True),
        (True, False, True),
        (False, True, False),
    ],
)
def test_the_pods_word_counts_before_its_accounts(pod_says, account_setting, expected):
    pod = a_pod(automountServiceAccountToken=pod_says)

    assert wants_token(pod, account_setting=account_setting) is expected


def test_every_container_has_it_unless_something_else_is_there():
    own = {"name": "own", "mountPath": TOKEN_FOLDER}
    containers = [{"name": "plain"}, {"name": "busy", "volumeMounts": [own]}]
    pod = a_pod(containers=containers, initContainers=[{"name": "first"}], volumes=[{"name": "own", "emptyDir": {}}])

    given = with_token(pod)

    mounts = {
        each.name: [(m.name, m.mount_path, m.read_only) for m in each.volume_mounts] for each in given.all_containers
    }
    name = f"kube-api-access-{pod.uid[:5]}"
    assert mounts["plain"] == mounts["first"] == [(name, TOKEN_FOLDER, True)]
    assert mounts["busy"] == [("own", TOKEN_FOLDER, False)]
    assert [volume.name for volume in given.spec.volumes] == ["own", name]
    assert needed_by(given).config_maps == {"kube-root-ca.crt"}


def test_a_pod_whose_containers_all_have_something_else_there_needs_none():
    pod = a_pod(containers=[{"name": "main", "volumeMounts": [{"name": "own", "mountPath": TOKEN_FOLDER + "/"}]}])

    assert not wants_token(pod, account_setting=None)


def test_the_shortest_token_says_when_they_are_made_anew():
    def projected(seconds: int) -> dict:
        return {
            "name": f"v{seconds}",
            "projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": seconds}}]},
        }

    life = token_life(a_pod(volumes=[projected(7200), projected(600)]))

    assert life is not None and life.total_seconds() == 600
    assert token_life(a_pod()) is None
