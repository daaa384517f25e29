"""Every example passes admission, without a warning."""

from pathlib import Path

import pytest
from admission_builders import KINDS, a_queue, a_world, review

from volcano.api.manifests import load_documents

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_admitted(path):
    documents = [d for d in load_documents(path.read_bytes()) if d["kind"] in KINDS and "volcano" in d["apiVersion"]]
    queues = [a_queue(d["metadata"]["name"], "Open") for d in documents if d["kind"] == "Queue"]

    for document in documents:
        outcome = review(document, world=a_world(*queues))
        assert (outcome.denial, outcome.warnings) == ("", ())


def test_there_are_examples():
    assert EXAMPLES
