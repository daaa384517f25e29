"""The Warning event that reports an object which admission refused."""

from __future__ import annotations

from volcano.admission.review import Notice
from volcano.api.meta import Key
from volcano.machinery.admission import Attributes
from volcano.machinery.plan import Record, Ref


def event_about(attributes: Attributes, notice: Notice) -> Record:
    """The Warning event about a refusal; the object itself was never stored."""
    about = Ref(attributes.resource, Key(attributes.namespace, attributes.name))
    return Record(about, notice.reason, notice.message, "Warning")
