"""The credentials on this machine that no pod may read: keys and tokens in home folders, and those of the system.

Pods see the machine's files, read-only. These are covered in each container; a pod that needs one gets it as a Secret.
Host keys of sshd are replaced by a key of the agent's own, since an sshd in a pod does not start without one.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from volcano.machinery.certificates import write_private

IN_HOMES: Final = (
    ".ssh", ".kube", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/rclone", ".docker", ".gnupg", ".netrc",
    ".git-credentials", ".pypirc", ".npmrc", ".pgpass", ".my.cnf", ".s3cfg", ".boto", ".vault-token", ".terraform.d",
    ".password-store", ".local/share/keyrings", ".local/share/volcano", ".cache/huggingface/token", ".mozilla",
    ".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history",
)  # fmt: skip
OF_THE_SYSTEM: Final = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
    "/etc/ssl/private", "/etc/letsencrypt", "/etc/krb5.keytab", "/etc/munge", "/etc/kubernetes", "/etc/rancher",
    "/etc/wireguard", "/etc/NetworkManager/system-connections", "/var/lib/kubelet", "/var/lib/rancher",
    "/var/lib/etcd", "/var/lib/docker", "/var/lib/containerd", "/var/lib/cloud", "/var/spool/cron",
)  # fmt: skip
HOST_KEYS: Final = ("/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key")
MAX_HOMES: Final = 1000


class MachineCredentials:
    """Looked for at each start of a container: they may come while the agent runs."""

    def __init__(self, host_key: Path) -> None:
        self._host_key = host_key

    def open(self) -> None:
        """Make the host key that pods see, once."""
        if not self._host_key.exists():
            made = Ed25519PrivateKey.generate()
            write_private(self._host_key, made.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))

    def hidden(self) -> tuple[Path, ...]:
        found = [Path(home) / name for home in _homes() for name in IN_HOMES if os.path.exists(f"{home}/{name}")]
        return (*found, *(Path(path) for path in OF_THE_SYSTEM if os.path.exists(path)))

    def replaced(self) -> dict[Path, Path]:
        """Files of the machine, and what pods see in their place. Who cannot read host keys needs no other ones."""
        return {Path(path): self._host_key for path in HOST_KEYS if os.access(path, os.R_OK)}


def _homes() -> Iterator[str]:
    """The home of this user, and the usual places of others; only those that can be entered matter."""
    own = os.path.expanduser("~")
    others = [each.path for each in itertools.islice(_entries("/home"), MAX_HOMES)]
    yield from (each for each in dict.fromkeys((own, "/root", *others)) if os.access(each, os.X_OK))


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from (each for each in entries if each.is_dir(follow_symlinks=False))
    except OSError:
        return
