"""The help screens that Volcano's own tests compare, byte for byte."""

import pytest

GLOBAL = """\
      --log-flush-frequency duration   Maximum number of seconds between log flushes (default 5s)
  -v, --v Level                        number for the log level verbosity
      --vmodule moduleSpec             comma-separated list of pattern=N settings for file-filtered logging (only works for the default text log format)
"""
ROOT = f"""\
Usage:
  vcctl [command]

Available Commands:
  help        Help about any command
  job         vcctl command line operation job
  jobflow     vcctl command line operation jobflow
  jobtemplate vcctl command line operation jobtemplate
  pod         vcctl command line operation pod
  queue       Queue Operations
  version     Print the version information

Flags:
  -h, --help                           help for vcctl
{GLOBAL}
Use "vcctl [command] --help" for more information about a command.
"""
JOB = f"""\
vcctl command line operation job

Usage:
  vcctl job [command]

Available Commands:
  delete      delete a job
  list        list job information
  resume      resume a job
  run         run job by parameters from the command line
  suspend     abort a job
  view        show job information

Flags:
  -h, --help   help for job

Global Flags:
{GLOBAL}
Use "vcctl job [command] --help" for more information about a command.
"""
LIST = f"""\
list job information

Usage:
  vcctl job list [flags]

Flags:
      --all-namespaces      list jobs in all namespaces
  -h, --help                help for list
  -k, --kubeconfig string   (optional) absolute path to the kubeconfig file
  -s, --master string       the address of apiserver
  -n, --namespace string    the namespace of job (default "default")
  -q, --queue string        list job with specified queue name
  -S, --scheduler string    list job with specified scheduler name
      --selector string     fuzzy matching jobName

Global Flags:
{GLOBAL}"""


def leaf(name, short):
    return f"""\
{short}

Usage:
  vcctl job {name} [flags]

Flags:
  -h, --help                help for {name}
  -k, --kubeconfig string   (optional) absolute path to the kubeconfig file
  -s, --master string       the address of apiserver
  -N, --name string         the name of job
  -n, --namespace string    the namespace of job (default "default")

Global Flags:
{GLOBAL}"""


RUN = f"""\
run job by parameters from the command line

Usage:
  vcctl job run [flags]

Flags:
  -f, --filename string     the yaml file of job
  -h, --help                help for run
  -i, --image string        the container image of job (default "busybox")
  -k, --kubeconfig string   (optional) absolute path to the kubeconfig file
  -L, --limits string       the resource limit of the task (default "cpu=1000m,memory=100Mi")
  -s, --master string       the address of apiserver
  -m, --min int             the minimal available tasks of job (default 1)
  -N, --name string         the name of job
  -n, --namespace string    the namespace of job (default "default")
  -r, --replicas int        the total tasks of job (default 1)
  -R, --requests string     the resource request of the task (default "cpu=1000m,memory=100Mi")
  -S, --scheduler string    the scheduler for this job (default "volcano")

Global Flags:
{GLOBAL}"""


@pytest.mark.parametrize(
    ("line", "screen"),
    [
        ("vcctl --help", ROOT),
        ("vcctl", ROOT),
        ("vcctl help", ROOT),
        ("vcctl job --help", JOB),
        ("vcctl job", JOB),
        ("vcctl job foo", JOB),
        ("vcctl help job", JOB),
        ("vcctl job list --help", LIST),
        ("vcctl job suspend -n job1 --help", leaf("suspend", "abort a job")),
        ("vcctl job resume -n job1 --help", leaf("resume", "resume a job")),
        ("vcctl job run --help", RUN),
        ("vcctl job run -h", RUN),
    ],
)
def test_help_screens_do_not_change(call, line, screen):
    answer = call(line, connected=False)

    assert (answer.out, answer.err, answer.code) == (screen, "", 0)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("vcctl frob", 'Error: unknown command "frob" for "vcctl"'),
        ("vcctl job list --frob", "Error: unknown flag: --frob"),
        ("vcctl job list -Z", "Error: unknown shorthand flag: 'Z' in -Z"),
        (
            "vcctl job run -m many",
            'Error: invalid argument "many" for "-m, --min" flag: strconv.ParseInt: parsing "many": invalid syntax',
        ),
        ("vcctl queue create -w 99999999999", "value out of range"),
        ("vcctl job list -n", "Error: flag needs an argument: 'n' in -n"),
        ("vcctl job list --queue", "Error: flag needs an argument: --queue"),
    ],
)
def test_what_cannot_be_understood_goes_to_stderr_with_code_1(call, line, says):
    answer = call(line, connected=False)

    assert says in answer.err
    assert (answer.out, answer.code) == ("", 1)


def test_underscores_in_flag_names_are_dashes_and_shorts_can_be_glued(call, server):
    assert call("vcctl job list --all_namespaces").out == "No resources found\n"
    assert call("vcctl job list -ndefault").code == 0
    assert call("vcctl job list -n=default").code == 0


def test_version_has_six_lines(call):
    answer = call("vcctl version", connected=False)

    names = [line.partition(": ")[0] for line in answer.out.splitlines()]
    assert names == ["API Version", "Version", "Git SHA", "Built At", "Go Version", "Go OS/Arch"]
    assert answer.code == 0


def test_an_unreadable_kubeconfig_is_reported_first(call, tmp_path):
    missing = tmp_path / "none"

    answer = call(f"vcctl job run --kubeconfig {missing}", connected=False)

    assert answer.out == f"Failed to run job: there is no kubeconfig at {missing}\n"
    assert answer.code == 255
