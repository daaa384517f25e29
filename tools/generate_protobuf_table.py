"""Make src/volcano/embedded/apiserver/wire/data/protobuf.json.z: protobuf field numbers of Kubernetes' own kinds.

Run by developers when the project moves to another Kubernetes release; users never need it:

    go mod download k8s.io/api@v0.36.3 k8s.io/apimachinery@v0.36.3 k8s.io/apiextensions-apiserver@v0.36.3 \
        k8s.io/kube-aggregator@v0.36.3
    python tools/generate_protobuf_table.py $(go env GOMODCACHE)/k8s.io v0.36.3

Numbers and types come from the generated.proto files; which fields are pointers (so that a zero means something), which
are inlined and what JSON calls them comes from the tags of the Go structs beside them. Only what the kinds of the
scheme can reach is kept.
"""

from __future__ import annotations

import json
import re
import sys
import zlib
from pathlib import Path

from volcano.api.scheme import BUILT_IN

TARGET = Path(__file__).parent.parent / "src/volcano/embedded/apiserver/wire/data/protobuf.json.z"
REQUESTS = (
    "k8s.io.api.core.v1.Binding", "k8s.io.api.policy.v1.Eviction", "k8s.io.api.autoscaling.v1.Scale",
    "k8s.io.api.authentication.v1.TokenRequest", "k8s.io.api.authentication.v1.TokenReview",
    "k8s.io.api.authentication.v1.SelfSubjectReview", "k8s.io.api.authorization.v1.SubjectAccessReview",
    "k8s.io.api.authorization.v1.SelfSubjectAccessReview", "k8s.io.api.authorization.v1.LocalSubjectAccessReview",
    "k8s.io.api.authorization.v1.SelfSubjectRulesReview", "k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions",
)  # fmt: skip
SCALARS = {"string": "s", "bytes": "y", "bool": "b", "int32": "i", "int64": "i", "uint32": "i", "double": "d"}
FIELD = re.compile(r"^  (?:(optional|repeated|required) )?(map<string, ?[\w.]+>|[\w.]+) (\w+) = (\d+);")
STRUCT = re.compile(r"^type (\w+) struct \{")
TAGGED = re.compile(r'^\t(?:(\w+)\s+)?([*\[\]\w.]+)\s+`.*?json:"([^"]*)".*?protobuf:"([^"]*)"')


def main(modules: Path, release: str) -> None:
    messages: dict[str, dict[str, str]] = {}
    for module in ("api", "apimachinery", "apiextensions-apiserver", "kube-aggregator"):
        for file in sorted((modules / f"{module}@{release}").rglob("generated.proto")):
            messages.update(read(file))
    groups = {(row.group, row.version): None for row in BUILT_IN}
    roots = [name for name in messages if any(is_kind(name, row) for row in BUILT_IN)] + list(REQUESTS)
    kept = reachable(roots, messages)
    table = {"release": release, "messages": {name: messages[name] for name in sorted(kept)}}
    text = json.dumps(table, separators=(",", ":"), sort_keys=True).encode()
    TARGET.write_bytes(zlib.compress(text, 9))
    print(f"{len(groups)} groups, {len(kept)} messages, {len(text)} bytes, {TARGET.stat().st_size} compressed")


def is_kind(message: str, row: object) -> bool:
    group, version, kind = row.group.split(".")[0] or "core", row.version, row.kind  # type: ignore[attr-defined]
    return message.endswith(f".{group}.{version}.{kind}") and ".testapigroup." not in message


def read(file: Path) -> dict[str, dict[str, str]]:
    """Message → field number → "flags:json name:type"."""
    text = file.read_text()
    package = re.search(r"^package ([\w.]+);", text, re.M)
    assert package is not None
    tags = read_tags(file.parent)
    found: dict[str, dict[str, str]] = {}
    message = ""
    for line in text.splitlines():
        if line.startswith("message "):
            message = line.split()[1]
            found[f"{package[1]}.{message}"] = {}
        elif match := FIELD.match(line):
            label, kind, name, number = match.groups()
            is_pointer, json_name, inline = tags.get((message, name), (False, name, False))
            flags = "".join(
                flag
                for flag, on in (
                    ("*", label == "repeated"),
                    ("%", kind.startswith("map<")),
                    ("?", is_pointer),
                    ("~", inline),
                )
                if on
            )
            kind = kind.removeprefix("map<string,").removesuffix(">").strip()
            found[f"{package[1]}.{message}"][number] = f"{flags}:{json_name}:{resolve(kind, package[1])}"
    return found


def resolve(kind: str, package: str) -> str:
    if kind in SCALARS:
        return SCALARS[kind]
    return kind.lstrip(".") if "." in kind else f"{package}.{kind}"


def read_tags(folder: Path) -> dict[tuple[str, str], tuple[bool, str, bool]]:
    """(struct, proto name) → is it a pointer, what JSON calls it, is it inlined."""
    tags: dict[tuple[str, str], tuple[bool, str, bool]] = {}
    for file in sorted(folder.glob("*.go")):
        if file.name.endswith(("_test.go", ".pb.go")):
            continue
        struct = ""
        for line in file.read_text().splitlines():
            if match := STRUCT.match(line):
                struct = match[1]
            elif match := TAGGED.match(line):
                _, kind, json_tag, proto_tag = match.groups()
                name = re.search(r"name=(\w+)", proto_tag)
                if name is not None:
                    json_name, _, options = json_tag.partition(",")
                    tags[struct, name[1]] = (kind.startswith("*"), json_name or name[1], "inline" in options)
    return tags


def reachable(roots: list[str], messages: dict[str, dict[str, str]]) -> set[str]:
    seen: set[str] = set()
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name in seen or name not in messages:
            continue
        seen.add(name)
        todo += [field.rsplit(":", 1)[1] for field in messages[name].values()]
    return seen


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
