"""The text of the kubeconfigs that this program writes: YAML, made and read again without a YAML library.

Importing one takes longer than a command needs for all else. `read_own` knows this form alone; every other kubeconfig
is read as YAML.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from volcano.api.meta import JSON

PLAIN: Final = r"[A-Za-z][A-Za-z0-9._-]*"
"""Names that YAML takes for text as they are, unless they are one of OTHER_MEANINGS."""
OTHER_MEANINGS: Final = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
FORM: Final = """\
apiVersion: v1
kind: Config
clusters:
- name: {cluster}
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {cluster}
  context:
    cluster: {cluster}
    user: {user}
    namespace: default
current-context: {cluster}
"""
_BASE64: Final = r"[A-Za-z0-9+/]+=*"
_FIELDS: Final = {
    "cluster": PLAIN, "server": r"https://[A-Za-z0-9.:\[\]-]+", "authority": _BASE64, "user": PLAIN,
    "certificate": _BASE64, "key": _BASE64,
}  # fmt: skip


def own_form(server: str, authority: bytes, certificate: bytes, key: bytes, *, user: str, cluster: str) -> bytes | None:
    """A kubeconfig with everything inside it; None where a value would need quotes."""
    values = {
        "cluster": cluster,
        "server": server,
        "authority": base64.b64encode(authority).decode(),
        "user": user,
        "certificate": base64.b64encode(certificate).decode(),
        "key": base64.b64encode(key).decode(),
    }
    is_text = {user.lower(), cluster.lower()}.isdisjoint(OTHER_MEANINGS)
    if not is_text or any(not re.fullmatch(_FIELDS[name], value) for name, value in values.items()):
        return None
    return FORM.format(**values).encode()


def read_own(content: bytes) -> JSON | None:
    """What such a text says, as YAML would read it; None for any other text."""
    lines = content.decode(errors="replace").splitlines()
    form = FORM.splitlines()
    if len(lines) != len(form):
        return None
    values: dict[str, str] = {}
    for line, pattern in zip(lines, form, strict=True):
        before, _, field = pattern.partition("{")
        name, value = field.rstrip("}"), line.removeprefix(before)
        if not name:
            if line != pattern:
                return None
        elif (
            not line.startswith(before)
            or not re.fullmatch(_FIELDS[name], values.setdefault(name, value))
            or values[name] != value
        ):
            return None
    if not {values["user"].lower(), values["cluster"].lower()}.isdisjoint(OTHER_MEANINGS):
        return None
    return as_config(values)


def as_config(values: dict[str, str]) -> JSON:
    """The fields of FORM as an object."""
    cluster, user = values["cluster"], values["user"]
    address = {"server": values["server"], "certificate-authority-data": values["authority"]}
    login = {"client-certificate-data": values["certificate"], "client-key-data": values["key"]}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": address}],
        "users": [{"name": user, "user": login}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user, "namespace": "default"}}],
        "current-context": cluster,
    }
