"""The server's own little authority: a CA made on first start, a server certificate, client certificates, kubeconfigs.

Everything lives in one directory; private keys and kubeconfigs are readable by their owner only.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import ssl
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from volcano.machinery.kubeconfig_text import as_config, own_form

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, GeneralName

CA_YEARS: Final = 10
CERTIFICATE_YEARS: Final = 1
RENEW_BEFORE: Final = timedelta(days=30)
BACKDATE: Final = timedelta(minutes=5)  # for clients whose clock is a little behind
PKCS8_HEAD: Final = b"-----BEGIN PRIVATE KEY-----"  # of keys that releases before this form have written
SERVICE_NAMES: Final = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


class Pair(msgspec.Struct, frozen=True):
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class UnusableKey(ValueError):
    """A file that cannot be made anew holds no key, or no certificate; the message says what to do."""


class Authority:
    """Signs with the CA in a directory, which is made if it is not there."""

    def __init__(self, directory: Path, now: datetime) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        pair = _read_pair(directory, "ca")
        if pair is None:
            pair = _make_ca(now)
            _write_pair(directory, "ca", pair)
        elif not _is_readable(pair):
            raise UnusableKey(
                f"{directory / 'ca.crt'} and ca.key are no certificate and its key; put copies of both in their place, "
                "or remove both: then a new CA is made, and kubeconfigs of users must be made again"
            )
        self.pair = pair

    @property
    def certificate_path(self) -> Path:
        return self.directory / "ca.crt"

    def server_pair(self, hosts: Sequence[str], now: datetime, *, file_name: str = "server") -> Path:
        """A file with the server's certificate and key, renewed when it lacks a host or is about to expire."""
        names = sorted({*hosts, "localhost", "127.0.0.1", "::1", *SERVICE_NAMES})
        pair = self._kept(file_name, names, now, lambda: self.issue("volcano-apiserver", (), now, hosts=names))
        return self._together(file_name, pair)

    def node_pair(self, hosts: Sequence[str], now: datetime) -> Path:
        """A file with the certificate and key of a kubelet, renewed likewise."""
        pair = self._kept("kubelet", hosts, now, lambda: self.issue("system:node", ("system:nodes",), now, hosts=hosts))
        return self._together("kubelet", pair)

    def client_file(self, name: str, groups: Sequence[str], now: datetime, *, file_name: str) -> Path:
        """A file with a client certificate and its key, renewed likewise."""
        return self._together(file_name, self.client_pair(name, groups, now, file_name=file_name))

    def _kept(self, file_name: str, hosts: Sequence[str], now: datetime, issue: Callable[[], Pair]) -> Pair:
        """The pair in these files while it is good, else a new one."""
        pair = _read_pair(self.directory, file_name)
        if pair is None or not _is_good(pair, self.pair, hosts, now):
            pair = issue()
            _write_pair(self.directory, file_name, pair)
        return pair

    def _together(self, file_name: str, pair: Pair) -> Path:
        """Certificate and key in one file, which changes only when they do."""
        path, content = self.directory / f"{file_name}.pem", pair.certificate + pair.key
        if not path.exists() or path.read_bytes() != content:
            write_private(path, content)
        return path

    def client_pair(self, name: str, groups: Sequence[str], now: datetime, *, file_name: str = "") -> Pair:
        """A client certificate for a user; with a file name, kept there and renewed in time."""
        if not file_name:
            return self.issue(name, groups, now)
        return self._kept(file_name, (), now, lambda: self.issue(name, groups, now))

    def issue(self, name: str, groups: Sequence[str], now: datetime, *, hosts: Sequence[str] = ()) -> Pair:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

        ca, ca_key = _load(self.pair)
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(ca.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - BACKDATE)
            .not_valid_after(now + timedelta(days=365 * CERTIFICATE_YEARS))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(h) for h in hosts]), critical=False
            )
        return _pair(builder.sign(ca_key, hashes.SHA256()), key)


def server_context(
    authority: Authority, hosts: Sequence[str], now: datetime, *, file_name: str = "server"
) -> ssl.SSLContext:
    """TLS for the listener; a client certificate is asked for, and must be ours if there is one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(authority.server_pair(hosts, now, file_name=file_name))
    context.load_verify_locations(authority.certificate_path)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def service_account_key(directory: Path) -> bytes:
    """The key service account tokens are signed with, as PEM; made on first use."""
    from cryptography.hazmat.primitives.asymmetric import ec

    path = directory / "service-accounts.key"
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        write_private(path, _key_bytes(ec.generate_private_key(ec.SECP256R1())))
    content = path.read_bytes()
    if not _is_key(content):
        raise UnusableKey(
            f"{path} is no key; put a copy in its place, or remove it: then tokens of service accounts are made again"
        )
    return content


def kubeconfig(server: str, ca: bytes, pair: Pair, *, user: str = "admin", cluster: str = "volcano") -> bytes:
    """A kubeconfig with everything inside it."""
    text = own_form(server, ca, pair.certificate, pair.key, user=user, cluster=cluster)
    if text is not None:
        return text
    values = {
        "cluster": cluster,
        "server": server,
        "authority": _base64(ca),
        "user": user,
        "certificate": _base64(pair.certificate),
        "key": _base64(pair.key),
    }
    return msgspec.yaml.encode(as_config(values))


def write_private(path: Path, content: bytes) -> None:
    """Replace a file in one step, readable by its owner only."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.chmod(aside, 0o600)
    aside.replace(path)


def _make_ca(now: datetime) -> Pair:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"volcano-ca-{serial % 10**8}")])
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + timedelta(days=365 * CA_YEARS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def _pair(certificate: Certificate, key: EllipticCurvePrivateKey) -> Pair:
    from cryptography.hazmat.primitives import serialization

    return Pair(certificate.public_bytes(serialization.Encoding.PEM), _key_bytes(key))


def _key_bytes(key: EllipticCurvePrivateKey) -> bytes:
    """As SEC1 (`EC PRIVATE KEY`): the Java clients read elliptic curve keys in no other form."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def _load(pair: Pair) -> tuple[Certificate, EllipticCurvePrivateKey]:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(pair.key, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("not a key of an elliptic curve")
    return x509.load_pem_x509_certificate(pair.certificate), key


def _is_readable(pair: Pair) -> bool:
    try:
        certificate, key = _load(pair)
    except (ValueError, TypeError):
        return False
    return certificate.public_key() == key.public_key()


def _is_key(content: bytes) -> bool:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return isinstance(load_pem_private_key(content, None), ec.EllipticCurvePrivateKey)
    except (ValueError, TypeError):
        return False


def _is_good(pair: Pair, ca: Pair, hosts: Sequence[str], now: datetime) -> bool:
    from cryptography import x509

    if not _is_readable(pair):
        return False
    certificate, _ = _load(pair)
    authority, _ = _load(ca)
    if not _is_signed_by(certificate, authority) or certificate.not_valid_after_utc - RENEW_BEFORE < now:
        return False
    if not hosts:
        return True
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(map(_general_name, hosts)) <= set(names)


def _is_signed_by(certificate: Certificate, authority: Certificate) -> bool:
    """By this CA, and not by one of the same name that was there before."""
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _general_name(host: str) -> GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _read_pair(directory: Path, name: str) -> Pair | None:
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    if not certificate.exists() or not key.exists():
        return None
    pair = Pair(certificate.read_bytes(), key.read_bytes())
    if not pair.key.startswith(PKCS8_HEAD):
        return pair
    pair = Pair(pair.certificate, _key_bytes(_load(pair)[1]))
    write_private(key, pair.key)
    return pair


def _write_pair(directory: Path, name: str, pair: Pair) -> None:
    write_private(directory / f"{name}.key", pair.key)
    write_private(directory / f"{name}.crt", pair.certificate)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
