"""HyperNodes on a real API server count the nodes that their members select."""

from __future__ import annotations

from tests.running_server import Client

from .components import wait_for


def test_hypernodes_count_their_nodes(running: object, api: Client):
    path = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
    members = {
        "exact": [{"type": "Node", "selector": {"exactMatch": {"name": f"main-{n}"}}} for n in range(3)],
        "regex": [{"type": "Node", "selector": {"regexMatch": {"pattern": "^main-[0-4]$"}}}],
        "label": [{"type": "Node", "selector": {"labelMatch": {"matchLabels": {"pool": "main"}}}}],
    }
    for name, selected in members.items():
        assert (
            api.create(
                path,
                {
                    "apiVersion": "topology.volcano.sh/v1alpha1",
                    "kind": "HyperNode",
                    "metadata": {"name": name},
                    "spec": {"tier": 1, "members": selected},
                },
            ).status
            == 201
        )

    def counts() -> dict[str, int]:
        return {
            body["metadata"]["name"]: body.get("status", {}).get("nodeCount", 0) for body in api.get(path).body["items"]
        }

    labelled = len(api.get("/api/v1/nodes", labelSelector="pool=main").body["items"])
    wait_for(lambda: counts() == {"exact": 3, "regex": 5, "label": labelled}, why=lambda: str(counts()))
    for name in members:
        api.delete(f"{path}/{name}")
