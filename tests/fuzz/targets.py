"""The parsers that clients reach, each as a function of bytes, with its own errors and the words of its language."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from volcano.admission.webhook.reviews import NotAReview, read_review
from volcano.api.bounded_yaml import BoundedYamlError, load_all_yaml
from volcano.api.cel.evaluator import compile_program, evaluate
from volcano.api.cron.schedule import CronError, parse_schedule
from volcano.api.durations import DurationError, parse_duration
from volcano.api.errors import ApiError
from volcano.api.jobs.reservations import RESERVATION_ANNOTATION, decode_reservation
from volcano.api.jobs.why import decode_why
from volcano.api.manifests import ManifestError, load_documents
from volcano.api.patterns import PatternError, compile_pattern
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.api.selectors import SelectorError, parse_field_selector, parse_label_selector
from volcano.api.times import parse_timestamp
from volcano.cli.slurm.batch_job import read_request
from volcano.cli.slurm.directives import ScriptRefused, check_script, directives
from volcano.cli.slurm.options import OptionRefused, of_script, settled
from volcano.cli.slurm.values import ValueRefused
from volcano.embedded.agent.network.dns_wire import DnsError, read_addresses, read_question
from volcano.embedded.agent.streams.channels import parse_size
from volcano.embedded.agent.streams.spdy.frames import Content, FrameReader, SpdyError
from volcano.embedded.apiserver.access.authentication import Authenticator
from volcano.embedded.apiserver.schemas.apply.field_sets import BadFields
from volcano.embedded.apiserver.schemas.apply.managed_fields import read_managed
from volcano.embedded.apiserver.schemas.apply.strategic import strategic_merge
from volcano.embedded.apiserver.schemas.tables.json_paths import PathError, compile_path, find
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.embedded.apiserver.verbs.listing import Continue
from volcano.embedded.apiserver.wire.bodies import yaml_value
from volcano.embedded.apiserver.wire.json_text import decode_json
from volcano.embedded.apiserver.wire.protobuf import decode_protobuf
from volcano.machinery.clock import SystemClock
from volcano.machinery.kubeconfig import ConfigError, endpoint_from
from volcano.machinery.patch import PatchError, json_patch, merge_diff, merge_patch
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.framework.config import InvalidConfig, parse_config
from volcano.simulator.workloads.swf import read_swf

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
POD: Final[dict[str, Any]] = {
    "metadata": {"name": "p", "labels": {"a": "b"}, "finalizers": ["x/y"]},
    "spec": {"containers": [{"name": "a", "image": "b", "ports": [{"containerPort": 1}]}], "tolerations": [{}]},
}


class FuzzTarget(NamedTuple):
    """A parser: what it may raise, inputs to begin with, and words that mutations put together."""

    run: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...]


def _text(content: bytes) -> str:
    return content.decode(errors="replace")


def _json_patch(content: bytes) -> None:
    operations = decode_json(content)
    if isinstance(operations, list):
        before = msgspec.json.encode(POD)
        json_patch(POD, operations)
        assert msgspec.json.encode(POD) == before, "the target of a patch is not changed"


def _merge(content: bytes) -> None:
    change = decode_json(content)
    patched = merge_patch(POD, change)
    assert merge_patch(POD, merge_diff(POD, patched)) == patched or b"null" in content


def _strategic(content: bytes) -> None:
    change = decode_json(content)
    if isinstance(change, dict):
        strategic_merge(POD, change, "io.k8s.api.core.v1.Pod")


def _quantity(content: bytes) -> None:
    found = parse_quantity(_text(content))
    again = parse_quantity(str(found))
    assert again == found, (found, again)


def _label_selector(content: bytes) -> None:
    found = parse_label_selector(_text(content))
    found.matches({"a": "b"})
    assert str(parse_label_selector(str(found))) == str(found)


def _field_selector(content: bytes) -> None:
    parse_field_selector(_text(content))


def _cel(content: bytes) -> None:
    program = compile_program(_text(content), {"type": "object", "properties": {"a": {"type": "string"}}})
    if not program.error:
        evaluate(program, {"a": "x", "l": [1, 2, 3]}, {"a": "y"}, {})


def _path(content: bytes) -> None:
    find(POD, compile_path(_text(content)))


def _pattern(content: bytes) -> None:
    compile_pattern(_text(content)).matches("a" * 60 + "b")


def _spdy(content: bytes) -> None:
    whole, pieces = FrameReader(), FrameReader()
    at_once = [frame for frame in whole.feed(content) if not isinstance(frame, Content)]
    in_pieces = [frame for at in range(0, len(content), 7) for frame in pieces.feed(content[at : at + 7])]
    assert [frame for frame in in_pieces if not isinstance(frame, Content)] == at_once


def _sizes(content: bytes) -> None:
    parse_size(content)


def _kubeconfig(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        if b"exec" not in content:  # would start a program
            endpoint_from([Path(file.name)])


def _swf(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        read_swf(Path(file.name))


def _sbatch(content: bytes) -> None:
    chosen, _ = settled(of_script(directives(check_script(content, "script"))))
    read_request(chosen, "name")


def _cron(content: bytes) -> None:
    parse_schedule(_text(content)).next(NOW)


def _dns(content: bytes) -> None:
    read_addresses(content, "A")
    read_question(content)


_TOKENS: Final = Authenticator(MemoryStore(), SystemClock())


def _token(content: bytes) -> None:
    _TOKENS.user_of_token(_text(content))


def _managed(content: bytes) -> None:
    found = decode_json(content)
    if isinstance(found, dict):
        read_managed(found)


JSON_WORDS: Final = (
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b'"a"',
    b'"',
    b"null",
    b"[" * 1500,
    b"true",
    b"1e400",
    b"-0",
    b"1" * 25,
    b'"\\ud800"',
)
YAML_WORDS: Final = (
    b"a: ",
    b"- ",
    b"[",
    b"{",
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!int ",
    b"|\n ",
    b"? ",
    b"---\n",
    b'"',
    b"0x",
    b"1_0",
    b".inf",
    b"\n",
    b"  ",
)
POD_WORDS: Final = (b'"metadata"', b'"spec"', b'"containers"', b'"name"', b'"labels"', b'"ports"', b'"finalizers"')

TARGETS: Final[dict[str, FuzzTarget]] = {
    "yaml": FuzzTarget(load_all_yaml, (BoundedYamlError,), (b"a: [1, &x {b: c}]\nd: *x\n", b"a: |\n  t\n---\n- 1\n"), YAML_WORDS),
    "yaml-body": FuzzTarget(yaml_value, (ApiError,), (b"kind: Pod\nspec: {a: [1]}\n",), YAML_WORDS),
    "manifests": FuzzTarget(lambda raw: load_documents(_text(raw)), (ManifestError, BoundedYamlError), (b"kind: Job\n---\nkind: Pod\n",), YAML_WORDS),
    "json": FuzzTarget(decode_json, (ApiError,), (b'{"a":[1,2.5,"x\\u00e9",null,true]}',), JSON_WORDS),
    "protobuf": FuzzTarget(
        decode_protobuf,
        (ApiError,),
        (b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x08\x0a\x03\x0a\x01p\x12\x01", b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x08\x12\x06\x0a\x01a\x12\x01b"),
        (b"k8s\0", b"\x0a", b"\x12\x00", b"\x80", b"\xff\xff\xff\xff\x0f", b"v1", b"Pod", b"Node", b"apps/v1", b"Deployment"),
    ),
    "json-patch": FuzzTarget(
        _json_patch,
        (ApiError, PatchError),
        (b'[{"op":"add","path":"/metadata/labels/c","value":"d"},{"op":"move","from":"/spec/containers/0","path":"/spec/x"}]', b'[{"op":"test","path":"/metadata/name","value":"p"},{"op":"copy","from":"","path":"/spec/y"}]'),
        (*JSON_WORDS, b'"op"', b'"path"', b'"from"', b'"value"', b'"replace"', b'"remove"', b"/spec/containers/0", b"/-", b"~0", b"~1", b"/00"),
    ),
    "merge-patch": FuzzTarget(_merge, (ApiError, PatchError), (b'{"metadata":{"labels":{"a":null}},"spec":{"x":[1]}}',), (*JSON_WORDS, *POD_WORDS)),
    "strategic-patch": FuzzTarget(
        _strategic,
        (ApiError,),
        (b'{"spec":{"containers":[{"name":"a","$patch":"delete"}],"$setElementOrder/containers":[{"name":"a"}],"$retainKeys":["containers"]}}',),
        (*JSON_WORDS, *POD_WORDS, b'"$patch"', b'"replace"', b'"delete"', b'"$retainKeys"', b'"$setElementOrder/containers"', b'"$deleteFromPrimitiveList/finalizers"'),
    ),
    "managed-fields": FuzzTarget(
        _managed,
        (ApiError, BadFields),
        (b'{"metadata":{"managedFields":[{"manager":"m","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{},".":{},"k:{\\"name\\":\\"a\\"}":{},"v:1":{},"i:0":{}}}}]}}',),
        (*JSON_WORDS, b'"f:a"', b'"k:{}"', b'"v:"', b'"i:"', b'"."', b'"subresource"', b'"time"'),
    ),
    "label-selector": FuzzTarget(_label_selector, (SelectorError,), (b"app=web,tier in (a,b),!legacy,version>3,x notin (c)",), (b"a", b"=", b"==", b"!=", b"!", b" in (", b" notin (", b")", b",", b"<", b">", b" ")),
    "field-selector": FuzzTarget(_field_selector, (SelectorError,), (b"metadata.name=a,spec.nodeName!=b", b"a=\\,\\=b"), (b"metadata.name", b"=", b"!=", b"==", b"\\", b",", b"!")),
    "cel": FuzzTarget(
        _cel,
        (),
        (b"self.a.size() > 0 && self.l.all(x, x > 0)", b"has(self.a) ? quantity('1Gi').isGreaterThan(quantity('1')) : isURL('a')", b"oldSelf.a == self.a || self.a.matches('^x+$')"),
        (b"self", b".a", b"oldSelf", b"(", b")", b"[", b"]", b"?", b":", b" && ", b" == ", b"!", b"-", b"'", b".all(x, ", b".map(x, ", b"quantity(", b"url(", b"ip(", b"cidr(", b"semver(", b"duration(", b"1", b"1.5", b"'\\u0000'"),
    ),
    "json-path": FuzzTarget(_path, (PathError,), (b".spec.containers[0].name", b'.a[?(@.type=="R")].b', b"['a.b'][*][1:2]"), (b".", b"[", b"]", b"*", b"?(@", b")", b"==", b"'", b'"', b"\\", b"-1", b":", b"9" * 30)),
    "pattern": FuzzTarget(_pattern, (PatternError,), (b"^(a+)+$", b"[a-z]{1,3}(?i:x)|\\bq"), (b"(", b")", b"*", b"+", b"{1000}", b"[", b"]", b"|", b"\\", b"(?P<a>", b"(?i)", b"^", b"$", b"\\pL")),
    "spdy": FuzzTarget(
        _spdy,
        (SpdyError,),
        (b"\x80\x03\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01", b"\x00\x00\x00\x01\x01\x00\x00\x03abc", b"\x80\x03\x00\x04\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x00\x00\x07\x00\x00\x00\x01"),
        (b"\x80\x03", b"\x00\x01", b"\x00\x02", b"\x00\x04", b"\x00\x00\x00\x08", b"\xff\xff\xff", b"\x78\xbb", b"\x00"),
    ),
    "terminal-size": FuzzTarget(_sizes, (), (b'{"Width":80,"Height":24}',), (*JSON_WORDS, b'"Width"', b'"Height"', b"1e999", b"-1")),
    "kubeconfig": FuzzTarget(
        _kubeconfig,
        (ConfigError,),
        (b"current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: https://h, certificate-authority-data: YQ==}}]\nusers: [{name: u, user: {token: t}}]\n",),
        (*YAML_WORDS, b"clusters", b"contexts", b"users", b"name", b"cluster", b"user", b"token", b"client-key-data", b"client-certificate", b"null", b"1"),
    ),
    "swf": FuzzTarget(_swf, (), (b"; c\n1 0 5 10 4 -1 -1 4 20 -1 1 1 1 1 1 -1 -1 -1\n",), (b" ", b"\n", b"-1", b"0", b";", b"1e5", b"nan", b"inf", b"9" * 20, b".5")),
    "sbatch": FuzzTarget(
        _sbatch,
        (ScriptRefused, OptionRefused, ValueRefused),
        (b"#!/bin/sh\n#SBATCH -n 4 --time=1-2:3:4 --mem=4G\n#SBATCH --array=1-5%2 -J 'a b'\necho\n", b"#!/bin/sh\n#SBATCH -N2-4 --gres=gpu:2 --dependency=afterok:1:2 -o %j.out\n"),
        (b"#SBATCH ", b"\n", b"--", b"-n", b"=", b"--array=", b"0-9:2", b"%3", b"--time=", b"1-0", b"--mem=", b"K", b"--gres=gpu:", b"--nodes=", b"'", b'"', b"--export=", b"--constraint=", b"--nodelist=", b"a[1-3]"),
    ),
    "scheduler-configuration": FuzzTarget(
        lambda raw: parse_config(_text(raw), known_actions=ACTIONS),
        (InvalidConfig,),
        (b'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n    enablePreemptable: false\n  - name: drf\n    arguments: {a.b: 1}\nconfigurations: [{name: allocate, arguments: {x: y}}]\n',),
        (*YAML_WORDS, b"actions: ", b"tiers:", b"plugins:", b"name: ", b"arguments:", b"allocate", b"gang", b"null", b"1"),
    ),
    "quantity": FuzzTarget(_quantity, (QuantityError,), (b"1.5Gi", b"100m", b"-1e3", b"0.000001n"), (b"1", b".", b"e", b"E", b"-", b"+", b"m", b"Ki", b"Ei", b"n", b"9" * 30, b"1e99")),
    "duration": FuzzTarget(lambda raw: parse_duration(_text(raw)), (DurationError,), (b"1h2m3.5s", b"-1us"), (b"1", b"h", b"m", b"s", b"ms", b".", b"-", b"9" * 25)),
    "timestamp": FuzzTarget(lambda raw: parse_timestamp(_text(raw)), (ValueError,), (b"2026-01-02T03:04:05.123456789Z", b"2026-01-02T03:04:05+01:00"), (b"2026", b"-", b":", b"T", b"Z", b"+", b".", b"99", b"0001", b"9999-12-31T23:59:59-23:59")),
    "cron": FuzzTarget(_cron, (CronError,), (b"*/5 1-3,7 * JAN MON-FRI", b"CRON_TZ=Europe/Berlin 0 0 31 2 *", b"@every 1h"), (b"*", b"/", b"-", b",", b" ", b"@", b"TZ=", b"UTC", b"?", b"L", b"0", b"59", b"99", b"@daily", b"@every ")),
    "dns": FuzzTarget(
        _dns,
        (DnsError,),
        (b"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x01b\x00\x00\x01\x00\x01", b"\x00\x01\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x01\x00\x04\x7f\x00\x00\x01"),
        (b"\xc0\x0c", b"\xc0\x00", b"\x3f", b"\x00", b"\x00\x29", b"\xff\xff", b"\x00\x01"),
    ),
    "token": FuzzTarget(_token, (), (b"eyJhbGciOiJFUzI1NiJ9.e30." + b"A" * 86, b"a.b.c"), (b".", b"eyJhbGciOiJFUzI1NiJ9", base64.b64encode(b"[" * 1500), b"W1tb", b"e30", b"A", b"==", b"-_", b"\xc3\xa9")),
    "reason-annotation": FuzzTarget(lambda raw: decode_why(_text(raw)), (), (b'{"reason":"a","tier":"b"}',), JSON_WORDS),
    "reservation-annotation": FuzzTarget(
        lambda raw: decode_reservation({RESERVATION_ANNOTATION: _text(raw)}),
        (),
        (b'{"start":"2026-01-01T00:00:00Z","nodes":{"a":1}}',),
        (*JSON_WORDS, b'"start"', b'"nodes"'),
    ),
    "continue": FuzzTarget(lambda raw: Continue.parse(_text(raw)), (ApiError,), (b"eyJydiI6MSwibmFtZXNwYWNlIjoiYSIsIm5hbWUiOiJiIn0",), (b"eyJ", b"W1tb", b"=", b"-", b"_", b"A")),
    "admission-review": FuzzTarget(
        read_review,
        (NotAReview,),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","resource":{"group":"","version":"v1","resource":"pods"},"kind":{"kind":"Pod"},"object":{}}}',),
        (*JSON_WORDS, b'"request"', b'"object"', b'"resource"', b'"kind"', b'"userInfo"', b'"uid"'),
    ),
}  # fmt: skip
