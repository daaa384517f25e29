"""ssh: pods of a job may log in to each other without a password, with a key pair made for the job."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from volcano.api.batch import TaskSpec
from volcano.api.core import Secret
from volcano.api.meta import JSON, Key, OwnerReference
from volcano.api.scheme import resource_type
from volcano.controllers.job.plugins.plugin import (
    JobPluginBase,
    address,
    all_containers,
    append,
    distinct_indices,
    host,
)
from volcano.machinery.plan import Delete, EnsureSecret, Plan, Ref, owner_reference

SECRET: Final = resource_type(Secret)
ROOT_PATH: Final = "/root/.ssh"
FILES: Final = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
KEY_BITS: Final = 2048
DEFAULT_PORT: Final = 22


class Ssh(JobPluginBase):
    name: ClassVar = "ssh"

    @property
    def secret_name(self) -> str:
        return f"{self.job.name}-ssh"

    @property
    def port(self) -> int:
        port = self.arguments.number("ssh-port")
        return port if 1 <= port <= 65535 else DEFAULT_PORT

    def config(self) -> str:
        """What the ssh client of each pod knows about the others."""
        lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
        for task in self.job.spec.tasks:
            for index in distinct_indices(task):
                name = host(self.job, task, index)
                lines += [f"Host {name}", f"  HostName {address(self.job, task, index)}", f"  Port {self.port}"]
        return "".join(f"{line}\n" for line in lines)

    def objects(self) -> Plan:
        private, public = self.arguments.text("ssh-private-key"), self.arguments.text("ssh-public-key")
        make = partial(secret_files, self.config(), private, public)
        reference = owner_reference(self.job)
        owner = OwnerReference(
            api_version=reference["apiVersion"],
            kind=reference["kind"],
            name=self.job.name,
            uid=self.job.uid,
            controller=True,
            block_owner_deletion=True,
        )
        return (EnsureSecret(Key(self.job.namespace, self.secret_name), make, owner),)

    def removal(self) -> Plan:
        return (Delete(Ref(SECRET, Key(self.job.namespace, self.secret_name))),)

    def on_pod(self, pod: JSON, task: TaskSpec, index: int) -> None:
        path = self.arguments.text("ssh-key-file-path")
        secret = {
            "secretName": self.secret_name,
            "items": [{"key": name, "path": f".ssh/{name}"} for name in FILES],
            "defaultMode": 0o600 if path == ROOT_PATH else 0o644,
        }
        append(pod["spec"], "volumes", {"name": self.secret_name, "secret": secret})
        for container in all_containers(pod):
            append(container, "volumeMounts", {"name": self.secret_name, "mountPath": path, "subPath": ".ssh"})


def secret_files(config: str, private: str, public: str) -> dict[str, bytes]:
    """The files of the Secret; without a given private key, a fresh pair. Called at the edge, never while deciding."""
    pair = (private.encode(), public.encode()) if private else _key_pair()
    return {"id_rsa": pair[0], "id_rsa.pub": pair[1], "authorized_keys": pair[1], "config": config.encode()}


def _key_pair() -> tuple[bytes, bytes]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private, public + b"\n"
