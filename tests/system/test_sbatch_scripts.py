"""Scripts as they are written for sbatch: each runs with the output that Slurm would give, or is refused with its line."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from tests import needs
from volcano.cli.programs import run_program
from volcano.cli.slurm.batch_submit import user_name

from .real_system import running_up, wait_until

SCRIPTS = Path(__file__).parent / "sbatch_scripts"
RUNS = {
    "01-plain.sh": {"slurm-{id}.out": "plain: job {id} named plain, 100 MB\n"},
    "02-short-options.sh": {"short-{id}.log": "short: 4 tasks of 2 cpus, 8 on the node\n"},
    "03-equals-and-spaces.sh": {"equals.txt": "equals: 2\n"},
    "04-quotes.sh": {"slurm-{id}.out": "quotes: a name with spaces\n"},
    "05-comments.sh": {"slurm-{id}.out": "comments: 2\n"},
    "06-options-after-a-command.sh": {"slurm-{id}.out": "after: 1\n"},
    "07-array.sh": {f"array_{{id}}_{n}.out": f"array: task {n} of 3 (1 to 3)\n" for n in (1, 2, 3)},
    "08-array-limited.sh": {f"limited-{n}.out": f"limited: {n} step 2\n" for n in (0, 2, 4, 6)},
    "09-array-list.sh": {f"list-00{n}.out": f"list: {n}\n" for n in (1, 5, 7, 8)},
    "10-srun-steps.sh": {
        "slurm-{id}.out": "".join(f"step rank {n} of 3\n" for n in (0, 1, 2)) + "step alone\n0: labelled\n1: labelled\n"
    },
    "11-python.sh": {"slurm-{id}.out": "python: python 2\n"},
    "12-error-file.sh": {"streams.out": "streams: to stdout\n", "streams.err": "streams: to stderr\n"},
    "13-chdir.sh": {"inside/here.out": "chdir: inside\n"},
    "14-export-none.sh": {"slurm-{id}.out": "export: [unset] has an id\n"},
    "15-export-some.sh": {"slurm-{id}.out": "some: hello green\n"},
    "16-gpus.sh": {"slurm-{id}.out": "gpus: 2\n"},
    "17-gpus-per-node.sh": {"slurm-{id}.out": "gpus per node: 1 with 2 cpus and 256 MB\n"},
    "18-mail.sh": {"slurm-{id}.out": "mail: account physics\n"},
    "19-fails.sh": {"slurm-{id}.out": "fails: with code 7\n"},
    "20-requeue-append.sh": {"appended.out": "was there\nappend: more\n"},
    "21-vsub-lines.sh": {"slurm-{id}.out": "vsub: vsub-lines 2 2\n"},
    "26-time-limit.sh": {"slurm-{id}.out": "limit: started\n"},
    "29-heredoc.sh": {
        "slurm-{id}.out": "heredoc: a $variable that stays\nheredoc: job {id}\nheredoc: #SBATCH --exclusive\n"
        "heredoc: heredoc\n"
    },
    "30-modules.sh": {"slurm-{id}.out": "modules: gcc/12 openmpi\n"},
    "31-array-with-step.sh": {
        f"logs/stepped_{{id}}_{n}.{end}": text
        for n in (1, 26, 51, 76)
        for end, text in (("out", f"stepped: {n} of 4, 1 to 76 by 25\n"), ("err", "stepped: error\n"))
    },
    "33-memory-per-cpu.sh": {
        "slurm-{id}.out": "per cpu: 2 tasks of 3, 10 MB for each, node unset\n"
        "per cpu: rank 0 has 3 threads\nper cpu: rank 1 has 3 threads\n"
    },
    "35-steps-in-parallel.sh": {
        "result.txt": "".join(f"parallel: step {n}\n" for n in (1, 2, 3)) + "parallel: rank 0\nparallel: rank 1\n",
        "step_{id}_1.txt": "parallel: rank 1\n",
    },
    "36-scratch-and-trap.sh": {
        "scratch-{id}.log": "scratch: from {folder} by {user}\nscratch: in default\nscratch: cleaned\n",
        "result-{id}": "{id}\n",
    },
    "37-perl.sh": {"slurm-{id}.out": "perl: 2 tasks on 1 node\n"},
    "38-queue-option.sh": {"slurm-{id}.out": "queue: default with 2 tasks\n"},
    "28-arguments.sh": {"28-arguments.sh.root.out": "arguments: 2 <one two> <$HOME> in a shell\n"},
}
ENDS = {"19-fails.sh": "Failed", "26-time-limit.sh": "Failed"}
ARGUMENTS = {"28-arguments.sh": ["one two", "$HOME"]}
NOTES = {
    "18-mail.sh": [
        "line 2: #SBATCH --mail-type=END,FAIL: --mail-type is ignored",
        "line 3: #SBATCH --mail-user=someone@example.org: --mail-user is ignored",
        "line 4: #SBATCH --account=physics --qos=normal: --qos is ignored",
    ],
    "35-steps-in-parallel.sh": ["line 5: #SBATCH --hint=nomultithread: --hint is ignored"],
    "38-queue-option.sh": ["--qos is ignored", "--mail-type is ignored", "--cpu-bind is ignored"],
}
MODULE = '() { case $1 in load) shift; export LOADED="$*" ;; esac\n}'
"""What a cluster's profile makes of `module`, much shortened."""
REFUSED = {
    "22-exclusive.sh": ["22-exclusive.sh: line 4: #SBATCH --exclusive: --exclusive is not supported"],
    "23-gpu-type.sh": ["23-gpu-type.sh: line 3: #SBATCH --gres=gpu:a100:2: 'gpu:a100:2' names a type of GPU"],
    "24-misspelt.sh": [
        "24-misspelt.sh: line 3: #SBATCH --cpu-per-task=4: --cpu-per-task is not known",
        "cpus-per-task",
    ],
    "25-several-refusals.sh": [
        "line 2: #SBATCH --licenses=matlab:1: --licenses is not supported",
        "line 4: #SBATCH --begin=16:00: --begin is not supported",
        "line 5: #SBATCH --signal=B:USR1@60: --signal is not supported",
    ],
    "32-heterogeneous.sh": [
        "32-heterogeneous.sh: line 3: #SBATCH hetjob: a job of several kinds of nodes is not supported"
    ],
    "34-several-wrong-lines.sh": [
        "line 2: #SBATCH --gres=gpu:a100:2: 'gpu:a100:2' names a type of GPU",
        "line 3: #SBATCH --cpus-per-tasks=4: --cpus-per-tasks is not known; did you mean cpus-per-task?",
        "line 4: #SBATCH --time=tomorrow: 'tomorrow' is no time limit",
        "line 5: #SBATCH --exclusive: --exclusive is not supported",
        "line 6: #SBATCH --array=9-1: '9-1' has a range that ends before it begins",
        'line 7: --output="never closed: no closing quotation',
    ],
}
SEVERAL_NODES = {
    "27-two-nodes.sh": {
        "slurm-{id}.out": "nodes: 2 with 2(x2) tasks\n"
        + "".join(f"{n}: on node {n // 2}\n" for n in range(4))
        + "hosts: 2\n"
    }
}


@pytest.fixture(scope="module")
def up(tmp_path_factory):
    with running_up(
        tmp_path_factory.mktemp("up"), "--node-cpu", "64", "--node-resources", "nvidia.com/gpu=8"
    ) as system:
        yield system


@pytest.fixture
def vsub(up, tmp_path, monkeypatch, capsys):
    """Submit in a folder of its own; the number, and what was said on stderr."""
    monkeypatch.chdir(tmp_path)
    variables = {"TEST_COLOUR": "green", "KUBECONFIG": str(up.data / "kubeconfig"), "BASH_FUNC_module%%": MODULE}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "inside").mkdir()
    (tmp_path / "appended.out").write_text("was there\n")

    def call(*words):
        code = run_program("vsub", [str(word) for word in words])
        said = capsys.readouterr()
        number = re.search(r"Submitted batch job (\d+)\n", said.out)
        return code, int(number[1]) if number else 0, said.err

    return call


def jobs_of(up, number):
    items = up.api.get("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs").body["items"]
    found = [each for each in items if each["metadata"]["labels"].get("volcano.sh/array") == str(number)]
    return found or [each for each in items if each["metadata"]["labels"].get("volcano.sh/job-id") == str(number)]


def phases(up, number):
    return {((each.get("status") or {}).get("state") or {}).get("phase", "") for each in jobs_of(up, number)}


def lines_in_any_order(text):
    return sorted(text.splitlines())


def test_every_script_has_its_expectation():
    assert {path.name for path in SCRIPTS.glob("*.sh")} == {*RUNS, *REFUSED, *SEVERAL_NODES}


@pytest.mark.parametrize("script", sorted(RUNS))
def test_the_script_runs(up, vsub, tmp_path, script):
    code, number, said = vsub(SCRIPTS / script, *ARGUMENTS.get(script, []))

    assert code == 0, said
    for note in NOTES.get(script, []):
        assert note in said
    end = ENDS.get(script, "Completed")
    wait_until(lambda: phases(up, number) <= {"Completed", "Failed"}, f"{script} ended")
    assert phases(up, number) == {end}
    for file, text in RUNS[script].items():
        written = (tmp_path / file.format(id=number)).read_text()
        wanted = text.format(id=number, folder=tmp_path.name, user=user_name())
        assert lines_in_any_order(written) == lines_in_any_order(wanted), written


@pytest.mark.parametrize("script", sorted(REFUSED))
def test_the_script_is_refused_with_its_lines(vsub, tmp_path, script):
    code, number, said = vsub(SCRIPTS / script)

    assert (code, number) == (1, 0)
    assert [line for line in REFUSED[script] if line not in said] == []
    assert "the job was not submitted" in said


@needs.SSHD
@pytest.mark.root
def test_a_job_of_two_nodes_reaches_both_with_srun(up, vsub, tmp_path):
    code, number, said = vsub(SCRIPTS / "27-two-nodes.sh")

    assert code == 0, said
    wait_until(lambda: phases(up, number) == {"Completed"}, "the job completed")
    for file, text in SEVERAL_NODES["27-two-nodes.sh"].items():
        written = (tmp_path / file.format(id=number)).read_text()
        assert lines_in_any_order(written) == lines_in_any_order(text), written


def test_dependencies_hold_a_job_until_another_has_ended(up, vsub, tmp_path):
    _, first, _ = vsub("-J", "first", "--wrap", "until [ -e go ]; do sleep 0.1; done; echo first >> order")
    code, second, said = vsub("-d", f"afterok:{first}", "--wrap", "echo second >> order")
    assert code == 0, said
    _, never, _ = vsub("--dependency=afternotok:first", "--wrap", "echo never >> order")
    wait_until(lambda: "Dependency" in str(jobs_of(up, second)[0].get("status")), "the second waits")

    (tmp_path / "go").touch()
    wait_until(lambda: phases(up, second) == {"Completed"}, "the second completed")

    assert (tmp_path / "order").read_text() == "first\nsecond\n"
    wait_until(lambda: phases(up, first) == {"Completed"}, "the first completed")
    assert phases(up, never) == {"Pending"}
    code, _, said = vsub("-d", "afterok:nothing-of-this-name", "--wrap", "true")
    assert code == 1 and "there is no job nothing-of-this-name" in said


def test_dependencies_on_several_jobs_and_on_those_of_the_same_name(up, vsub, tmp_path):
    wait = "until [ -e go ]; do sleep 0.1; done"
    first, second = (vsub("-J", name, "--wrap", f"{wait}; echo {name} >> order")[1] for name in ("one", "two"))
    code, third, said = vsub("-J", "one", "-d", f"afterok:{first}:{second},singleton", "--wrap", "echo three >> order")
    assert code == 0, said
    wait_until(lambda: "Dependency" in str(jobs_of(up, third)[0].get("status")), "the third waits")

    (tmp_path / "go").touch()

    wait_until(lambda: phases(up, third) == {"Completed"}, "the third completed")
    assert (tmp_path / "order").read_text().splitlines()[-1] == "three"


@pytest.mark.parametrize(
    "option", [["--queue", "narrow"], ["--queue=narrow"], ["-p", "narrow"], ["--partition=narrow"]]
)
def test_the_queue_is_named_on_the_command_line(up, vsub, option):
    queue = {"metadata": {"name": "narrow"}, "spec": {"weight": 1}}
    assert up.api.create("/apis/scheduling.volcano.sh/v1beta1/queues", queue).status in (201, 409)
    wait_until(
        lambda: "Open" in str(up.api.get("/apis/scheduling.volcano.sh/v1beta1/queues/narrow").body), "it is open"
    )

    code, number, said = vsub(*option, "--wrap", "true")

    assert code == 0, said
    assert jobs_of(up, number)[0]["spec"]["queue"] == "narrow"


def test_a_folder_that_is_not_temporary_is_written_by_the_job(up, vsub, monkeypatch):
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix=".volcano-test-") as text:
        monkeypatch.chdir(text)
        code, number, said = vsub("-W", "--wrap", "echo here; echo more > result")

        assert (code, said) == (0, "")
        assert (Path(text) / f"slurm-{number}.out").read_text() == "here\n"
        assert (Path(text) / "result").read_text() == "more\n"


def test_in_the_folder_of_the_systems_data_the_output_still_comes(up, vsub, monkeypatch):
    monkeypatch.chdir(up.data.parent)
    code, number, said = vsub("-W", "--wrap", "echo output")

    assert code == 0, said
    assert "stays in its pod, except for its output" in said
    assert (up.data.parent / f"slurm-{number}.out").read_text() == "output\n"


def test_vrun_in_that_folder_goes_to_another(up, vsub, monkeypatch, capsys):
    monkeypatch.chdir(up.data.parent)

    code = run_program("vrun", ["sh", "-c", "pwd"])

    said = capsys.readouterr()
    assert code == 0 and "/tmp\n" in said.out
    assert "cannot be entered in the pod: going to /tmp instead" in said.out  # a log has both streams


def test_wrap_and_wait_give_the_jobs_exit(vsub, tmp_path):
    assert vsub("--wait", "--wrap", "exit 3")[0] == 1
    code, number, _ = vsub("-W", "-o", "out", "--wrap", "echo a; echo b")

    assert code == 0 and number
    assert (tmp_path / "out").read_text() == "a\nb\n"
