"""Functions of the submitting shell in the environment of a job."""

from __future__ import annotations

from volcano.cli.slurm.shell_functions import MAX_FUNCTION_BYTES, absent_programs, function_variables

MODULE = "() { eval $(modulecmd bash $*)\n}"


def test_functions_travel_with_the_whole_environment_only() -> None:
    environment = {"BASH_FUNC_module%%": MODULE, "BASH_FUNC_ml%%": "() { module $*\n}", "HOME": "/home/me"}

    found = function_variables("ALL,EXTRA=1", environment)

    assert found == {
        "VSUB_FUNCTIONS": "2",
        "VSUB_FUNCTION_0": "BASH_FUNC_ml%%=() { module $*\n}",
        "VSUB_FUNCTION_1": f"BASH_FUNC_module%%={MODULE}",
    }
    assert function_variables("NONE", environment) == function_variables("HOME", environment) == {}


def test_a_function_that_is_too_large_stays() -> None:
    assert function_variables("ALL", {"BASH_FUNC_large%%": "x" * MAX_FUNCTION_BYTES}) == {}


def test_a_module_that_this_shell_does_not_know_is_named_with_its_line() -> None:
    script = "#!/bin/bash\n#SBATCH -n 1\n  module load gcc\nml python\n"

    assert absent_programs(script, {}) == [
        "line 3: module load gcc: `module` is there only if the image or its profile has it"
    ]
    assert absent_programs(script, {"BASH_FUNC_module%%": MODULE, "BASH_FUNC_ml%%": MODULE}) == []
    assert absent_programs("#!/bin/sh\necho module load\nmodule=3\n", {}) == []
