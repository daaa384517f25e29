"""Projected volumes: several sources in one directory, none writing where another does."""

from __future__ import annotations

from typing import Final

from volcano.api import names
from volcano.api.fields import Field
from volcano.api.pods.validation.environment import FILE_FIELDS, check_field_ref, check_resource_ref
from volcano.api.pods.validation.labels import check_annotations, check_label_selector
from volcano.api.pods.validation.paths import check_mode, check_needed, check_unreserved

KEY_TYPES: Final = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
KINDS: Final = (
    "secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate",
)  # fmt: skip
TEN_MINUTES: Final = 600
MAX_TOKEN_SECONDS: Final = 2**32
HOUR: Final = 3600
MAX_CERTIFICATE_SECONDS: Final = 91 * 24 * HOUR
MAX_KUBERNETES_CERTIFICATE_SECONDS: Final = 24 * HOUR


def check_sources(volume: Field) -> None:
    taken: set[str] = set()
    for source in volume.each("sources"):
        given = [kind for kind in KINDS if source.has(kind)]
        for kind in given:
            _check_source(source.at(kind), kind, volume, taken)
        if len(given) > 1:
            source.forbidden("may not specify more than 1 volume type per source")


def check_key_to_path(entry: Field) -> None:
    check_needed(entry, "key", "path")
    check_unreserved(entry.at("path"), entry.text("path"))
    check_mode(entry.at("mode"))


def check_downward_file(file: Field, place: Field, allowed: tuple[str, ...]) -> None:
    """Kubernetes reports a file's flaws at the volume, not at the item."""
    at = Field(file.value, place.path, place.errors)
    check_needed(at, "path")
    check_unreserved(at.at("path"), at.text("path"))
    if at.has("fieldRef"):
        check_field_ref(at.at("fieldRef"), allowed)
        if at.has("resourceFieldRef"):
            at.invalid("fieldRef and resourceFieldRef can not be specified simultaneously", "resource")
    elif at.has("resourceFieldRef"):
        check_resource_ref(at.at("resourceFieldRef"), in_volume=True)
    else:
        at.required("one of fieldRef and resourceFieldRef is required")
    check_mode(at.at("mode"))


def _check_source(source: Field, kind: str, volume: Field, taken: set[str]) -> None:
    match kind:
        case "secret" | "configMap":
            check_needed(source, "name")
            for entry in source.each("items"):
                check_key_to_path(entry)
                _take(volume, taken, entry.text("path"), blame=source.text("name"))
        case "downwardAPI":
            for file in source.each("items"):
                check_downward_file(file, source, FILE_FIELDS)
                _take(volume, taken, file.text("path"))
        case "serviceAccountToken":
            _check_token(source, volume)
        case "clusterTrustBundle":
            _check_trust_bundle(source)
            _take(volume, taken, source.text("path"), even_empty=True)
        case "podCertificate":
            _check_certificate(source, volume, taken)


def _take(volume: Field, taken: set[str], path: str, *, blame: str = "", even_empty: bool = False) -> None:
    if path in taken:
        volume.invalid("conflicting duplicate paths", blame or path)
    if path or even_empty:
        taken.add(path)


def _check_token(source: Field, volume: Field) -> None:
    seconds, path = source.number("expirationSeconds", HOUR), source.text("path")
    if seconds < TEN_MINUTES:
        source.at("expirationSeconds").invalid("may not specify a duration less than 10 minutes")
    if seconds > MAX_TOKEN_SECONDS:
        source.at("expirationSeconds").invalid("may not specify a duration larger than 2^32 seconds")
    if not path:
        volume.at("path").required()
    check_unreserved(volume.at("path"), path)


def _check_trust_bundle(source: Field) -> None:
    name, signer = source.at("name"), source.at("signerName")
    if name.is_set and signer.is_set:
        source.invalid("only one of name and signerName may be used")
    elif name.is_set:
        if not name.as_text():
            name.required("must be a valid object name")
        tail = name.as_text().rpartition(":")[2]
        for problem in names.subdomain_problems(tail):
            name.invalid(f"not a valid clustertrustbundlename: {problem}")
        if source.has("labelSelector"):
            source.at("labelSelector").invalid("labelSelector must be unset if name is specified")
    elif signer.is_set:
        if not signer.as_text():
            signer.required("must be a valid signer name")
        _check_signer(signer)
        check_label_selector(source.at("labelSelector"))
    else:
        source.required("either name or signerName must be specified")
    check_needed(source, "path")
    check_unreserved(source.at("path"), source.text("path"))


def _check_signer(place: Field) -> None:
    parts = place.as_text().split("/")
    if not place.as_text():
        place.required()
        return
    if len(parts) != 2:
        place.invalid("must be a fully qualified domain and path of the form 'example.com/signer-name'")
        return
    domain, path = parts
    if names.byte_length(domain) > names.SUBDOMAIN_LENGTH:
        place.too_long(names.SUBDOMAIN_LENGTH)
    for label in domain.split("."):
        if problems := names.dns_label_problems(label):
            for problem in problems:
                place.invalid(f'validating label "{label}": {problem}', domain)
            break
    if "." not in domain:
        place.invalid("should be a domain with at least two segments separated by dots", domain)
    for label in path.split("."):
        if problems := names.subdomain_problems(label):
            for problem in problems:
                place.invalid(f'validating label "{label}": {problem}', path)
            break


def _check_certificate(source: Field, volume: Field, taken: set[str]) -> None:
    _check_signer(source.at("signerName"))
    check_annotations(source, "userAnnotations")
    if source.text("keyType") not in KEY_TYPES:
        Field(source.text("keyType"), source.at("keyType").path, source.errors).unsupported(KEY_TYPES)
    seconds = source.at("maxExpirationSeconds").as_number()
    if seconds is not None:
        host = source.text("signerName").partition("/")[0]
        ours = f".{host}".endswith(".kubernetes.io")
        longest = MAX_KUBERNETES_CERTIFICATE_SECONDS if ours else MAX_CERTIFICATE_SECONDS
        if seconds < HOUR:
            source.at("maxExpirationSeconds").invalid("if provided, maxExpirationSeconds must be >= 3600")
        if seconds > longest:
            source.at("maxExpirationSeconds").invalid(f"if provided, maxExpirationSeconds must be <= {longest}")
    places = [name for name in ("credentialBundlePath", "keyPath", "certificateChainPath") if source.text(name)]
    for name in places:
        check_unreserved(source.at(name), source.text(name))
        _take(volume, taken, source.text(name))
    if not places:
        source.required("specify at least one of credentialBundlePath, keyPath, and certificateChainPath")
