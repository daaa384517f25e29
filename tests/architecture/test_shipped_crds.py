"""The shipped definitions are those that the structs give."""

import subprocess
import sys
from pathlib import Path

from volcano.api.schemas.crds import crd_manifests
from volcano.api.schemas.shipped_crds import shipped_crds

TOOL = Path(__file__).parents[2] / "tools" / "generate_crds.py"


def test_the_shipped_definitions_are_up_to_date():
    done = subprocess.run([sys.executable, TOOL, "--check"], check=False)

    assert done.returncode == 0, "run tools/generate_crds.py"


def test_a_server_starts_with_the_definitions_that_the_structs_give():
    assert shipped_crds() == crd_manifests()
