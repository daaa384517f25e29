"""Files of objects that a command is given: read and checked as a whole, with all errors at once."""

from __future__ import annotations

from pathlib import Path

from volcano.api.bounded_yaml import BoundedYamlError
from volcano.api.manifest_fields import field_problems
from volcano.api.manifests import ManifestError, load_documents
from volcano.api.meta import JSON
from volcano.cli.failures import Failed


def checked_documents(text: str | bytes, *, source: str) -> list[JSON]:
    """The objects of a text; ManifestError with every field that its kind does not have."""
    documents = load_documents(text, source=source)
    try:
        problems = field_problems(text, source=source)
    except BoundedYamlError as error:
        raise ManifestError(f"{source} is not YAML within the limits: {error}") from None
    if problems:
        raise ManifestError("\n".join(problems))
    return documents


def read_objects(path: str) -> list[JSON]:
    """The objects of a YAML file, for a command that ends where it cannot be used."""
    try:
        return checked_documents(Path(path).read_bytes(), source=path)
    except OSError as error:
        raise Failed(f"failed to read file, err: open {path}: {(error.strerror or str(error)).lower()}") from error
    except ManifestError as error:
        raise Failed(f"failed to decode file, err: {error}") from error
