"""The Helm chart, written from the same objects as the plain manifests: one file per topic, and documented values."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from volcano import __version__
from volcano.api.meta import JSON
from volcano.api.schemas.crds import crd_manifests
from volcano.install.installation import WITH_POLICIES, installation_parts
from volcano.install.values import EXTENSION, PLACEHOLDER, VALUES, Part, Placeholders
from volcano.install.yaml_text import as_yaml

KUBERNETES: Final = ">=1.30.0-0"
NOTES: Final = """\
Volcano {{ .Chart.AppVersion }} is installed in namespace {{ .Release.Namespace }}.

  image         {{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- if .Values.manager.enabled }}
  manager       replicas: {{ .Values.manager.replicas }}; for pods with schedulerName: {{ .Values.schedulerName }}
{{- else }}
  scheduler     replicas: {{ .Values.scheduler.replicas }}; for pods with schedulerName: {{ .Values.schedulerName }}
  controllers   replicas: {{ .Values.controllers.replicas }}
{{- end }}
{{- if eq .Values.admission.mode "webhook" }}
  admission     replicas: {{ .Values.admission.replicas }}; a webhook, whose certificate a Job makes and renews
{{- else if eq .Values.admission.mode "policies" }}
  admission     by policies inside the API server
{{- else }}
  admission     none: only the definitions' schemas are checked
{{- end }}

See that everything is up:

kubectl -n {{ .Release.Namespace }} get pods

Run two pods that start together or not at all:

kubectl create -f - <<END
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: hello}
spec:
  schedulerName: {{ .Values.schedulerName }}
  minAvailable: 2
  tasks:
  - name: worker
    replicas: 2
    template:
      spec:
        restartPolicy: Never
        containers: [{name: main, image: busybox, command: [echo, hello], resources: {requests: {cpu: 100m}}}]
END
kubectl get vcjob hello --watch
{{- if eq .Values.image.repository "volcano" }}

WARNING: the image is named without a registry, so nodes can only start it if they have it already. Build
deploy/Dockerfile, push it, and give --set image.repository=<registry>/volcano.
{{- end }}
{{- if and (eq .Values.admission.mode "policies") (not (semverCompare ">=1.36-0" .Capabilities.KubeVersion.Version)) }}

WARNING: this cluster is older than 1.36, where policies that fill in defaults have to be switched on (the feature gate
MutatingAdmissionPolicy and the API admissionregistration.k8s.io/v1beta1).
{{- end }}

Upgrades and uninstalling leave the definitions (CRDs) alone, and with them jobs and queues. To bring them up to date:

volcano manifests crds | kubectl apply --server-side -f -
"""
WHOLE: Final = re.compile(r"(?<=: )__VALUES\.([A-Za-z.]+)__$", re.M)
MUTATING: Final = re.compile(r"^(apiVersion: )admissionregistration\.k8s\.io/v1\n(kind: Mutating.*)$", re.M)
VERSION: Final = (
    r"\1admissionregistration.k8s.io/"
    r'{{ if semverCompare ">=1.36-0" .Capabilities.KubeVersion.Version }}v1{{ else }}v1beta1{{ end }}'
    r"\n\2"
)


def chart_files() -> dict[str, str]:
    """The chart: contents by path."""
    files = {
        "Chart.yaml": _dump(_about()),
        "values.yaml": values_text(),
        "values.schema.json": json.dumps(values_schema(), indent=2) + "\n",
        "templates/NOTES.txt": NOTES,
        "README.md": readme(),
    }
    for body in crd_manifests():
        files[f"crds/{body['metadata']['name']}.yaml"] = _dump(body)
    by_file: dict[str, list[Part]] = {}
    for part in installation_parts(Placeholders()):
        by_file.setdefault(part.file, []).append(part)
    return files | {f"templates/{name}.yaml": _template(parts) for name, parts in by_file.items()}


def write_chart(folder: Path) -> None:
    """Replace the chart in a folder; other files there are left alone."""
    files = chart_files()
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
    for kind in ("crds", "templates"):
        for old in (folder / kind).glob("*.yaml"):
            if f"{kind}/{old.name}" not in files:
                old.unlink()


def _about() -> JSON:
    return {
        "apiVersion": "v2",
        "name": "volcano",
        "description": "Batch scheduling for Kubernetes: gangs, queues, fair shares; Volcano's API in Python",
        "type": "application",
        "version": __version__,
        "appVersion": __version__,
        "kubeVersion": KUBERNETES,
        "keywords": ["batch", "scheduler", "gang-scheduling", "hpc"],
    }


def _template(parts: list[Part]) -> str:
    return "".join(_conditional(part.condition, _expressions(part)) for part in parts)


def _conditional(condition: str, text: str) -> str:
    if not condition:
        return f"---\n{text}"
    return f"{{{{- if {_expression(condition)} }}}}\n---\n{text}{{{{- end }}}}\n"


def _expression(condition: str) -> str:
    """`path`, `path=value` and several joined by `&`, in the template language."""
    terms = []
    for term in condition.split("&"):
        path, equals, wanted = term.partition("=")
        terms.append(f"eq (toString .Values.{path}) {json.dumps(wanted)}" if equals else f".Values.{path}")
    return terms[0] if len(terms) == 1 else "and " + " ".join(f"({term})" for term in terms)


def _expressions(part: Part) -> str:
    """YAML with template expressions where the placeholders were."""
    # CEL and others may hold what the template language takes for its own
    text = _dump(part.body).replace("{{", '{{ "{{" }}')
    text = WHOLE.sub(lambda found: f"{{{{ .Values.{found[1]} | toJson }}}}", text)
    text = EXTENSION.sub(
        lambda found: (
            f"{found[1]}{{{{- range .Values.{found[2]} }}}}\n{found[1]}- {{{{ . | toJson }}}}\n"
            f"{found[1]}{{{{- end }}}}\n"
        ),
        text,
    )
    text = PLACEHOLDER.sub(lambda found: f"{{{{ .{found[1].capitalize()}.{found[2]} }}}}", text)
    return MUTATING.sub(VERSION, text) if part.condition == WITH_POLICIES else text


def _dump(body: JSON) -> str:
    """Without line breaks in texts: a template's action must not be broken."""
    return as_yaml([body], width=10_000)


# -- values -------------------------------------------------------------------------------------------------------
def values_text() -> str:
    """values.yaml: every value with its description."""
    head = "# What can be chosen. Written by `volcano manifests chart`, as README.md is, which has the same in a table."
    return "\n".join([head, *_lines(_tree(), 0)]) + "\n"


def _tree() -> dict[str, Any]:
    """Values as nested as their paths."""
    tree: dict[str, Any] = {}
    for value in VALUES:
        *parents, name = value.path.split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[name] = value
    return tree


def _lines(tree: dict[str, Any], depth: int) -> list[str]:
    indent, lines = "  " * depth, []
    for name, value in tree.items():
        if depth == 0:
            lines.append("")
        if isinstance(value, dict):
            lines += [f"{indent}{name}:", *_lines(value, depth + 1)]
            continue
        lines.append(f"{indent}# {value.meaning}")
        lines += [f"{indent}{line}".rstrip() for line in _entry(name, value.default)]
    return lines


def _entry(name: str, value: Any) -> list[str]:
    """One value; a text of several lines stands as it is."""
    if isinstance(value, str) and "\n" in value:
        return [f"{name}: |", *(f"  {line}" for line in value.rstrip("\n").split("\n"))]
    return _dump({name: value}).rstrip("\n").split("\n")


def values_schema() -> JSON:
    """What Helm checks values against."""
    kinds: dict[type, str] = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
    choices = {"admission.mode": ["webhook", "policies", "none"], "admission.failurePolicy": ["Fail", "Ignore"]}

    def schema(tree: dict[str, Any]) -> JSON:
        properties: JSON = {}
        for name, value in tree.items():
            if isinstance(value, dict):
                properties[name] = schema(value)
                continue
            properties[name] = {"type": kinds[type(value.default)], "description": value.meaning}
            if value.path in choices:
                properties[name]["enum"] = choices[value.path]
        return {"type": "object", "additionalProperties": False, "properties": properties}

    top = schema(_tree())
    top["properties"]["global"] = {"type": "object"}
    return {"$schema": "https://json-schema.org/draft-07/schema#", **top}


def readme() -> str:
    rows = "\n".join(f"| `{value.path}` | {_default(value.default)} | {value.meaning} |" for value in VALUES)
    oldest = KUBERNETES.removeprefix(">=").removesuffix(".0-0")
    return f"""\
# Helm chart for Volcano in Python

    helm install volcano deploy/helm/volcano --namespace volcano-system --create-namespace \\
        --set image.repository=registry.example/volcano

Kubernetes {oldest} or newer. What it installs, upgrades, and the way from Volcano and back: docs/kubernetes.md.
Written by `volcano manifests chart deploy/helm/volcano`; do not edit by hand.

| Value | Default | Meaning |
|---|---|---|
{rows}

Values are checked when they are given: one that does not exist, or is of another type, is refused (values.schema.json).
"""


def _default(value: Any) -> str:
    text = json.dumps(value)
    return f"`{text}`" if len(text) < 60 else "see values.yaml"
