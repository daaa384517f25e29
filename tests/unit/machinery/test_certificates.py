"""The authority: made once, certificates renewed in time, kubeconfigs that say all."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from volcano.machinery.certificates import Authority, UnusableKey, kubeconfig, service_account_key

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def names(pem: bytes) -> set[str]:
    certificate = x509.load_pem_x509_certificate(pem)
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in found}


def test_the_ca_is_made_once_and_kept(tmp_path: Path):
    first, second = Authority(tmp_path, NOW), Authority(tmp_path, NOW)

    assert first.pair == second.pair
    assert (tmp_path / "ca.key").stat().st_mode & 0o777 == 0o600


def test_a_server_certificate_names_its_hosts_and_is_kept_while_good(tmp_path: Path):
    authority = Authority(tmp_path, NOW)
    first = authority.server_pair(["here.example"], NOW).read_bytes()

    assert authority.server_pair(["here.example"], NOW).read_bytes() == first
    assert {"here.example", "localhost", "127.0.0.1", "kubernetes.default.svc"} <= names(
        (tmp_path / "server.crt").read_bytes()
    )


def test_a_certificate_is_renewed_for_another_host_and_before_it_ends(tmp_path: Path):
    authority = Authority(tmp_path, NOW)
    first = authority.server_pair([], NOW).read_bytes()
    other = authority.server_pair(["new.example"], NOW).read_bytes()
    later = authority.server_pair(["new.example"], NOW + timedelta(days=340)).read_bytes()

    assert len({first, other, later}) == 3


def test_a_client_certificate_carries_name_and_groups(tmp_path: Path):
    pair = Authority(tmp_path, NOW).client_pair("ann", ("devs", "ops"), NOW)

    subject = x509.load_pem_x509_certificate(pair.certificate).subject
    assert [a.value for a in subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)] == ["ann"]
    assert [a.value for a in subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)] == ["devs", "ops"]


def test_a_kubeconfig_has_everything_inside(tmp_path: Path):
    authority = Authority(tmp_path, NOW)
    pair = authority.client_pair("ann", (), NOW)

    config = yaml.safe_load(kubeconfig("https://127.0.0.1:1", authority.pair.certificate, pair, user="ann"))

    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
    assert base64.b64decode(config["users"][0]["user"]["client-key-data"]) == pair.key
    assert config["current-context"] == config["contexts"][0]["name"]


def test_the_key_of_service_accounts_stays(tmp_path: Path):
    assert service_account_key(tmp_path) == service_account_key(tmp_path)


def test_keys_are_written_in_the_form_that_java_clients_read(tmp_path: Path):
    pair = Authority(tmp_path, NOW).client_pair("admin", ("system:masters",), NOW, file_name="admin")

    assert pair.key.startswith(b"-----BEGIN EC PRIVATE KEY-----\n")


def test_keys_that_are_kept_as_pkcs8_are_converted_and_stay_the_same_keys(tmp_path: Path):
    first = Authority(tmp_path, NOW).client_pair("admin", (), NOW, file_name="admin")
    key = load_pem_private_key(first.key, None)
    (tmp_path / "admin.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    again = Authority(tmp_path, NOW).client_pair("admin", (), NOW, file_name="admin")

    assert again == first
    assert (tmp_path / "admin.key").read_bytes() == first.key


@pytest.mark.parametrize("name", ["ca.key", "ca.crt"])
@pytest.mark.parametrize(
    "content", [b"", b"x", b"-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"]
)
def test_a_damaged_ca_is_named_and_left(tmp_path: Path, name: str, content: bytes):
    Authority(tmp_path, NOW)
    (tmp_path / name).write_bytes(content)

    with pytest.raises(UnusableKey, match="are no certificate"):
        Authority(tmp_path, NOW)

    assert (tmp_path / name).read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"x"])
def test_a_damaged_key_for_tokens_is_named(tmp_path: Path, content: bytes):
    service_account_key(tmp_path)
    (tmp_path / "service-accounts.key").write_bytes(content)

    with pytest.raises(UnusableKey, match="is no key"):
        service_account_key(tmp_path)


@pytest.mark.parametrize("name", ["server.key", "server.crt"])
def test_a_damaged_certificate_of_the_server_is_made_again(tmp_path: Path, name: str):
    authority = Authority(tmp_path, NOW)
    authority.server_pair(["a"], NOW)
    (tmp_path / name).write_bytes(b"")

    x509.load_pem_x509_certificate(authority.server_pair(["a"], NOW).read_bytes())


def test_a_certificate_of_an_earlier_ca_of_the_same_name_is_made_again(tmp_path: Path):
    before = Authority(tmp_path, NOW).server_pair(["a"], NOW).read_bytes()
    for name in ("ca.crt", "ca.key"):
        (tmp_path / name).unlink()

    assert Authority(tmp_path, NOW).server_pair(["a"], NOW).read_bytes() != before
