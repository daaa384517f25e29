"""The example with a probe: a step starts once the server that another step runs answers."""

from volcano.api.manifests import load_documents
from volcano.api.scheme import find_resource_type

from .real_system import EXAMPLES, running_up, wait_until

FLOWS = "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobflows"


def test_a_step_waits_for_the_server_it_probes(tmp_path):
    with running_up(tmp_path) as up:
        documents = load_documents((EXAMPLES / "jobflow-probe.yaml").read_bytes())
        for document in documents:
            group = document["apiVersion"].rpartition("/")[0]
            row = find_resource_type(group, document["kind"])
            answer = up.api.create(row.path("default" if row.namespaced else ""), document)
            assert answer.status == 201, answer
        name = next(each["metadata"]["name"] for each in documents if each["kind"] == "JobFlow")

        def phase():
            return ((up.api.get(f"{FLOWS}/{name}").body.get("status") or {}).get("state") or {}).get("phase")

        wait_until(lambda: phase() in ("Succeed", "Failed"), "the flow ends")

        assert phase() == "Succeed"
