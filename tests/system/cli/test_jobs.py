"""vcctl job and its Slurm-like relatives, against the embedded server."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from volcano.api.meta import Key

from .conftest import today

BATCH = "batch.volcano.sh"


def a_job(name="demo", namespace="default", queue="default", scheduler="volcano", labels=None, replicas=(2, 1)):
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", "true"]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    tasks = [{"name": f"t{i}", "replicas": n, "template": template} for i, n in enumerate(replicas)]
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}}
    spec = {"queue": queue, "schedulerName": scheduler, "minAvailable": 2, "tasks": tasks}
    return {"metadata": metadata, "spec": spec}


def test_run_creates_the_job_that_the_flags_describe(call, server):
    answer = call("vcctl job run -N demo -m 2 -r 3 -i alpine -R cpu=500m -L cpu=1,memory=1Gi")

    assert (answer.out, answer.code) == ("run job demo successfully\n", 0)
    spec = server.get(BATCH, "Job", Key("default", "demo"))["spec"]
    assert (spec["minAvailable"], spec["schedulerName"], len(spec["tasks"])) == (2, "volcano", 1)
    task = spec["tasks"][0]
    assert task["replicas"] == 3
    template = task["template"]
    assert template["metadata"] == {"name": "demo", "labels": {"job.volcano.sh": "demo"}}
    assert template["spec"]["restartPolicy"] == "Never"
    (container,) = template["spec"]["containers"]
    assert container["name"] == "demo"
    assert container["image"] == "alpine"
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["resources"] == {"requests": {"cpu": "500m"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    assert "command" not in container


def test_run_takes_the_queue_and_limits_follow_larger_requests(call, server):
    assert call("vcctl job run wide -q team -R cpu=4,memory=50Mi").code == 0

    spec = server.get(BATCH, "Job", Key("default", "wide"))["spec"]
    (container,) = spec["tasks"][0]["template"]["spec"]["containers"]
    assert spec["queue"] == "team"
    assert container["resources"] == {
        "requests": {"cpu": "4", "memory": "50Mi"},
        "limits": {"cpu": "4", "memory": "100Mi"},
    }


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("vcctl job run -f a.yaml -q team", "Failed to run job: --queue: a job of a file states its own spec.queue"),
        ("vcctl job run", "Failed to run job: job name cannot be left blank\n"),
        ("vcctl job run -N x -R cpu", "Failed to run job: invalid resource"),
        ("vcctl job run -N x -R cpu=lots", "Failed to run job: quantities must match the regular expression"),
        ("vcctl job run -f job.json", "Failed to run job: only support yaml file"),
        ("vcctl job run -f missing.yaml", "Failed to run job: failed to read file"),
        ("vsub", "Failed to: job name cannot be left blank\n"),
    ],
)
def test_run_refuses_what_it_cannot_use(call, line, says):
    answer = call(line)

    assert says in answer.err
    assert (answer.out, answer.code) == ("", 255)


A_JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: from-file}
spec:
  minAvailable: 1
  queue: team
  tasks:
    - name: a
      replicas: 1
      template:
        spec:
          containers:
            - {name: c, image: i}
"""
A_QUEUE = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: team}\nspec: {weight: 3}\n---\n"


def test_run_takes_every_document_of_a_file(call, server, tmp_path):
    manifest = tmp_path / "job.yaml"
    manifest.write_text(A_QUEUE + A_JOB)

    answer = call(f"vcctl job run -f {manifest}")

    made = "queue.scheduling.volcano.sh/team created\nrun job from-file successfully\n"
    assert (answer.out, answer.code) == (made, 0), answer.err
    assert server.get(BATCH, "Job", Key("default", "from-file"))["spec"]["tasks"][0]["name"] == "a"
    again = call(f"vcctl job run -f {manifest}")
    assert again.out == "queue.scheduling.volcano.sh/team configured\n"
    assert 'jobs.batch.volcano.sh "from-file" already exists' in again.err


def test_all_unknown_fields_of_a_file_are_refused_with_their_lines(call, server, tmp_path):
    manifest = tmp_path / "job.yaml"
    manifest.write_text(A_QUEUE + A_JOB.replace("minAvailable", "minAvailabel").replace("image:", "imgae:"))

    answer = call(f"vcctl job run -f {manifest}")

    assert answer.err.splitlines() == [
        f"Failed to run job: failed to decode file, err: {manifest}:10: spec.minAvailabel: unknown field; "
        "did you mean minAvailable?",
        f"{manifest}:18: spec.tasks[0].template.spec.containers[0].imgae: unknown field; did you mean image?",
    ]
    assert (answer.out, answer.code) == ("", 255)
    assert server.items(BATCH, "Job") == server.items("scheduling.volcano.sh", "Queue") == []


def test_run_into_another_namespace_than_the_files_is_refused(call, tmp_path):
    manifest = tmp_path / "job.yml"
    manifest.write_text(
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a, namespace: kube-system}\nspec: {}\n"
    )

    answer = call(f"vcctl job run -f {manifest}")

    assert "does not match the namespace" in answer.err
    assert answer.code == 255


def test_an_existing_job_is_reported_in_the_servers_words(call):
    call("vcctl job run -N demo")

    answer = call("vcctl job run -N demo")

    assert answer.err == 'Failed to run job: jobs.batch.volcano.sh "demo" already exists\n'
    assert answer.code == 255


def test_list_prints_the_table_to_the_byte(call, server):
    server.create(BATCH, "Job", a_job("a-long-name", labels={"volcano.sh/job-type": "Tensor"}))
    server.create(BATCH, "Job", a_job("b"))
    status = {"state": {"phase": "Running"}, "minAvailable": 2, "pending": 1, "running": 2, "retryCount": 4}
    server.set_status(BATCH, "Job", Key("default", "b"), status)

    answer = call("vcctl job list")

    day = today()
    assert answer.out == (
        "Name          Creation       Phase       JobType     Replicas    Min   Pending   Running   Succeeded   Failed    Unknown     RetryCount\n"
        f"a-long-name   {day}     {'':<12}Tensor      3           0     0         0         0           0         0           0         \n"
        f"b             {day}     Running     Batch       3           2     1         2         0           0         0           4         \n"
    )
    assert answer.code == 0


def test_list_everywhere_adds_the_namespace(call, server):
    server.create(BATCH, "Job", a_job("a", namespace="kube-system"))

    header, row = call("vcctl job list --all-namespaces").out.splitlines()

    assert header.startswith("Namespace     Name   Creation       ")
    assert row.startswith("kube-system   a      ")


def test_list_filters_by_queue_scheduler_and_part_of_the_name(call, server):
    server.create(BATCH, "Job", a_job("alpha", queue="default", scheduler="volcano"))
    server.create(BATCH, "Job", a_job("beta", queue="q2", scheduler="other"))

    def shown(line):
        return [row.split()[0] for row in call(line).out.splitlines()[1:]]

    assert shown("vcctl job list -q q2") == ["beta"]
    assert shown("vcctl job list -S volcano") == ["alpha"]
    assert shown("vcctl job list --selector et") == ["beta"]
    assert call("vcctl job list -q none").out == "No resources found\n"
    assert call("vjobs --selector zzz").out.startswith("Name    Creation")


def test_nothing_to_list(call):
    for line in ("vcctl job list", "vjobs", "vcctl queue list", "vqueues", "vcctl jobflow list", "vcctl pod list"):
        answer = call(line)
        assert (answer.out, answer.code) == ("No resources found\n", 0)


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("vcctl job suspend -N demo", "AbortJob"),
        ("vcctl job resume -N demo", "ResumeJob"),
        ("vcctl job suspend -n demo", "AbortJob"),
        ("vsuspend -n demo", "AbortJob"),
        ("vresume -n demo -N default", "ResumeJob"),
    ],
)
def test_suspend_and_resume_issue_a_command(call, server, line, action):
    job = server.create(BATCH, "Job", a_job())

    answer = call(line)

    assert (answer.out, answer.code) == ("", 0)
    (command,) = server.items("bus.volcano.sh", "Command", "default")
    reference = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "demo",
        "uid": job["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert command["action"] == action
    assert command["target"] == reference
    assert command["metadata"]["ownerReferences"] == [reference]
    assert command["metadata"]["generateName"] == f"demo-{action.lower()}-"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("vcctl job suspend", "Failed to suspend job: job name is mandatory to suspend a particular job\n"),
        ("vcctl job resume", "Failed to resume job: job name is mandatory to resume a particular job\n"),
        ("vcctl job delete", "Failed to delete job: job name is mandatory to delete a particular job\n"),
        (
            "vcctl job view",
            "Failed to view job: job name (specified by --name or -N) is mandatory to view a particular job\n",
        ),
        ("vcctl job suspend -N none", 'Failed to suspend job: jobs.batch.volcano.sh "none" not found\n'),
        ("vcctl job view -N none", 'Failed to view job: jobs.batch.volcano.sh "none" not found\n'),
        ("vcctl job delete -N none", 'Failed to delete job: jobs.batch.volcano.sh "none" not found\n'),
        ("vcancel", "Failed to: job name is mandatory to cancel a particular job\n"),
        ("vcancel -n none", 'Failed to: jobs.batch.volcano.sh "none" not found\n'),
        ("vsuspend", "Failed to: job name is mandatory to suspend a particular job\n"),
    ],
)
def test_what_fails_says_so_on_stderr_with_code_255(call, line, says):
    answer = call(line)

    assert (answer.out, answer.err, answer.code) == ("", says, 255)


def test_delete_and_cancel_remove_the_job_at_once(call, server):
    server.create(BATCH, "Job", a_job("one"))
    server.create(BATCH, "Job", a_job("two"))

    assert call("vcctl job delete -N one").out == "delete job one successfully\n"
    assert call("vcancel -n two").out == "cancel job two successfully\n"

    assert server.items(BATCH, "Job") == []


def test_vsub_splits_its_command_like_a_shell(call, server, monkeypatch):
    monkeypatch.setenv("VOLCANO_DEFAULT_IMAGE", "alpine")
    monkeypatch.setenv("VOLCANO_SCHEDULER_NAME", "")

    answer = call("vsub -n demo -c", "sh -c 'echo \"a b\"' # said")

    assert answer.out == "run job demo successfully\n"
    spec = server.get(BATCH, "Job", Key("default", "demo"))["spec"]
    container = spec["tasks"][0]["template"]["spec"]["containers"][0]
    assert container["command"] == ["sh", "-c", 'echo "a b"']
    assert container["image"] == "alpine"
    assert spec["schedulerName"] == "volcano"
    assert call("vsub -n other -c", "'open").code == 255


def test_view_prints_everything_about_a_job(call, server, monkeypatch):
    job = a_job(labels={"team": "ml"})
    job["spec"]["plugins"] = {"env": [], "ssh": ["--ssh-port=2222", "--x"]}
    container = job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container |= {
        "ports": [{"containerPort": 80, "name": "web"}],
        "workingDir": "/tmp",
        "resources": {"requests": {"cpu": "1000m"}, "limits": {"memory": "1024Mi"}},
    }
    job["spec"]["tasks"] = job["spec"]["tasks"][:1]
    made = server.create(BATCH, "Job", job)
    condition = {"status": "Running", "lastTransitionTime": "2026-01-02T03:04:05Z"}
    status = {
        "state": {"phase": "Running"}, "running": 2, "minAvailable": 2, "version": 1,
        "controlledResources": {"plugin-env": "env"}, "conditions": [condition],
    }  # fmt: skip
    server.set_status(BATCH, "Job", Key("default", "demo"), status)
    monkeypatch.setenv("TZ", "UTC")

    out = call("vcctl job view -N demo").out

    assert out.startswith(
        'Name:       \tdemo\nNamespace:  \tdefault\nLabels:     \t{"team":"ml"}\nAnnotations:\t<none>\n'
    )
    for line in (
        "API Version:\t", "Kind:       \t", "Metadata:", f"  UID:               \t{made['metadata']['uid']}",
        "  Min Available:     \t2", "    Env:\t[]", "    Ssh:\t[--ssh-port=2222 --x]",
        "  Scheduler Name:    \tvolcano", "    Name:\tt0", "    Replicas:\t2",
        "          Cri . Cci . Io / Container - Type:          \t",
        "        Creation Timestamp:\t0001-01-01 00:00:00 +0000 UTC", "          Command:", "            sh",
        "          Image:\tbusybox", "          Name: \tmain", "            Container Port:\t80",
        "            Name:          \tweb", "            Limits:", "              Cpu:   \t0",
        "              Memory:\t1Gi", "              Cpu:   \t1", "            Working Dir:\t/tmp",
        "        Restart Policy:   \tNever", "Status:", "  Running:      \t2", "  Min Available:\t2", "  Version:      \t1",
        "    Phase:\tRunning", "    plugin-env: \tenv", "    Status\tTransitionTime", "Events: \t<none>",
    ):  # fmt: skip
        assert line in out.splitlines(), line
    assert "Conditions:" not in call("vjobs -n demo").out


def test_view_shows_the_jobs_events(call, server):
    server.create(BATCH, "Job", a_job())
    event = {
        "metadata": {"name": "demo.1234", "namespace": "default"},
        "involvedObject": {"kind": "Job", "name": "demo", "namespace": "default"},
        "type": "Warning", "reason": "PodGroupPending", "message": " waits \n", "count": 3,
        "firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-01T00:00:00Z",
        "source": {"component": "vc-controller-manager", "host": "h1"},
    }  # fmt: skip
    server.create("", "Event", event)

    lines = call("vcctl job view -N demo").out.splitlines()

    start = lines.index("Events:")
    assert lines[start + 1].split("\t") == [
        f"{'Type':<15}",
        f"{'Reason':<40}",
        f"{'Age':<30}",
        f"{'Form':<40}",
        "Message",
        "",
    ]
    kind, reason, age, form, message, _ = lines[start + 3].split("\t")
    assert (kind, reason, message) == (f"{'Warning':<15}", f"{'PodGroupPending':<40}", "waits")
    assert "(x3 over " in age
    assert form == f"{'vc-controller-manager, h1':<40}"


def test_lists_can_be_had_in_other_forms(call, server):
    import json

    server.create(BATCH, "Job", a_job("demo"))

    assert json.loads(call("vcctl job list -o json").out)["items"][0]["metadata"]["name"] == "demo"
    assert "managedFields" not in call("vcctl job list -o yaml").out
    assert call("vcctl job list -o name").out == "job.batch.volcano.sh/demo\n"
    assert "Queue" in call("vcctl job list -o wide").out.splitlines()[0]
    assert call("vcctl job list -o toml").code == 255


# -- which jobs -----------------------------------------------------------------------------------------------------
def test_names_are_arguments_too_and_may_be_several(call, server):
    for name in ("one", "two", "three"):
        server.create(BATCH, "Job", a_job(name))

    assert call("vcctl job view one").out.startswith("Name:")
    assert call("vcctl job delete one two").out == "delete job one successfully\ndelete job two successfully\n"
    assert call("vcancel three").out == "cancel job three successfully\n"
    assert server.items(BATCH, "Job") == []


def test_one_that_does_not_exist_does_not_keep_the_others(call, server):
    server.create(BATCH, "Job", a_job("gang"))
    server.create(BATCH, "Job", a_job("other"))

    answer = call("vcctl job delete gnag other")

    assert answer.out == "delete job other successfully\n"
    assert answer.err == 'Failed to delete job: jobs.batch.volcano.sh "gnag" not found; did you mean gang?\n'
    assert answer.code == 255


def test_jobs_are_chosen_by_pattern_and_by_labels(call, server):
    for name, labels in (("gang-1", {"team": "a"}), ("gang-2", {"team": "b"}), ("other", {"team": "a"})):
        server.create(BATCH, "Job", a_job(name, labels=labels))

    assert len(call("vcctl job list -l team=a").out.splitlines()) == 3
    assert call("vcctl job delete -l team=b").out == "delete job gang-2 successfully\n"
    assert call("vcancel gang-*").out == "cancel job gang-1 successfully\n"
    missing = call("vcancel gang-*")
    assert (missing.err, missing.code) == ("Failed to: no job gang-* in namespace default\n", 255)


@pytest.mark.parametrize("verb", ["view", "suspend", "resume", "delete"])
def test_n_alone_means_the_job_as_older_texts_write_it(call, server, verb):
    server.create(BATCH, "Job", a_job("my-job"))

    answer = call(f"vcctl job {verb} -n my-job")

    assert answer.code == 0
    assert answer.err == (f"-n is the namespace; the job my-job in default is taken: vcctl job {verb} my-job\n")


def test_n_alone_with_no_such_job_is_a_namespace(call):
    answer = call("vcctl job view -n nowhere")

    assert "-n is the namespace, and there is no job nowhere in default" in answer.err
    assert answer.code == 255


def test_two_different_names_are_refused(call):
    answer = call("vcctl job explain -N one two")

    assert (answer.err, answer.code) == ("Error: two names are given: one and two\n", 1)


def test_no_system_says_what_was_tried_and_how_to_get_one(call, monkeypatch, tmp_path):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("VOLCANO_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("KUBERNETES_MASTER", "http://127.0.0.1:9")

    answer = call("vcctl job list", connected=False)

    assert f"Tried KUBECONFIG (not set), ~/.kube/config and {tmp_path}/kubeconfig (not there)" in answer.err
    assert "volcano up" in answer.err and "--kubeconfig FILE" in answer.err
    assert (answer.out, answer.code) == ("", 255)


# -- wait ---------------------------------------------------------------------------------------------------------
def test_another_server_at_the_usual_address_is_not_taken_for_a_system(call, monkeypatch, tmp_path):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("VOLCANO_DATA_DIR", str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        monkeypatch.setenv("KUBERNETES_MASTER", f"http://127.0.0.1:{other.server_port}")

        answer = call("vcctl job list", connected=False)
        other.shutdown()

    assert f"http://127.0.0.1:{other.server_port} answers, but it is no Kubernetes API server" in answer.err
    assert "volcano up" in answer.err
    assert answer.code == 255


def test_wait_ends_with_the_phase(call, server):
    server.create(BATCH, "Job", a_job("done"))
    server.set_status(BATCH, "Job", Key("default", "done"), {"state": {"phase": "Completed"}})
    server.create(BATCH, "Job", a_job("bad"))
    server.set_status(BATCH, "Job", Key("default", "bad"), {"state": {"phase": "Failed"}})

    assert (call("vcctl job wait done").out, call("vcctl job wait done").code) == ("job done is Completed\n", 0)
    assert call("vcctl job wait done bad --for Ended").code == 0
    failed = call("vcctl job wait bad")
    assert (failed.err, failed.code) == ("job bad is Failed, not Completed\n", 1)
    late = call("vcctl job wait done --for Running --timeout 0s")
    assert (late.err, late.code) == ("job done is Completed, not Running\n", 1)


def test_wait_gives_up_after_its_time(call, server):
    server.create(BATCH, "Job", a_job("new"))

    answer = call("vcctl job wait new --timeout 0s")

    assert (answer.err, answer.code) == ("job new is new after 0s, not Completed\n", 1)
