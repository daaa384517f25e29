"""CEL's url: absolute URLs and absolute paths, taken apart as Go's net/url does it (which is not what Python does).

A URL is passed between calls as its canonical text and parsed again for each part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import AddressValueError, IPv6Address
from typing import Any, Final, NamedTuple

from volcano.api.cel.values import Function, made, succeeds, text_of

URL: Final = "kubernetes.URL"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})?", re.ASCII)
_PORT: Final = re.compile(r":[0-9]*|", re.ASCII)
_UNRESERVED: Final = r"A-Za-z0-9_.~\-"
_IN_PATH: Final = re.compile(rf"[{_UNRESERVED}$&+,/:;=@%!'()*\[\]]*", re.ASCII)
_IN_USER: Final = re.compile(rf"[{_UNRESERVED}:!$&'()*+,;=%@]*", re.ASCII)
_NOT_IN_HOST: Final = re.compile(rf"[^{_UNRESERVED}!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff]", re.ASCII)
_ZONE: Final = "%25"
_KEPT_IN_PATH: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@")


class Url(NamedTuple):
    scheme: str = ""
    user: str = ""
    host: str = ""  # what it means; the other parts are as they are written
    path: str = ""
    query: str | None = None
    fragment: str = ""
    opaque: str = ""
    written_host: str = ""

    @property
    def text(self) -> str:
        """The canonical text: equal URLs have equal texts."""
        scheme = f"{self.scheme}:" if self.scheme else ""
        authority = f"//{f'{self.user}@' if self.user else ''}{self.written_host}" if self.host or self.user else ""
        if not (scheme or authority or self.path or self.opaque):
            authority = "//"  # an empty authority: without it, the text could not be read again
        query = f"?{self.query}" if self.query is not None else ""
        fragment = f"#{_escaped(_unescaped(self.fragment, 'path'))}" if self.fragment else ""
        return f"{scheme}{self.opaque or authority + self.escaped_path}{query}{fragment}"

    @property
    def hostname(self) -> str:
        host = self.host
        if host.startswith("["):
            return host[1:].partition("]")[0]
        return host.rpartition(":")[0] if ":" in host else host

    @property
    def port(self) -> str:
        tail = self.host.rpartition("]")[2]
        return tail.rpartition(":")[2] if ":" in tail else ""

    @property
    def escaped_path(self) -> str:
        """The path as it was written, if it is a valid encoding; otherwise the decoded path, escaped."""
        if _IN_PATH.fullmatch(self.path):
            return self.path
        return _escaped(_unescaped(self.path, "path"))

    @property
    def values(self) -> dict[str, list[str]]:
        """The query's values by name; what cannot be read of it is left out."""
        found: dict[str, list[str]] = {}
        for pair in (self.query or "").split("&"):
            if pair and ";" not in pair:
                name, _, value = pair.partition("=")
                try:
                    name, value = (_word(text) for text in (name, value))
                except ValueError:
                    continue
                found.setdefault(name, []).append(value)
        return found


def parse_url(text: str) -> Url:
    """ValueError when it is neither an absolute URL nor an absolute path."""
    try:
        _parsed(text)  # a fragment is taken for a part of the rest first, and must make sense there
        whole, _, fragment = text.partition("#")
        found = _parsed(whole)
        _unescaped(fragment, "path")
    except ValueError as error:
        raise ValueError(f'URL parse error during conversion from string: parse "{text[:200]}": {error}') from None
    return found._replace(fragment=fragment)


def _parsed(text: str) -> Url:
    if not text:
        raise ValueError("empty url")
    if _CONTROL.search(text):
        raise ValueError("net/url: invalid control character in URL")
    if text == "*":
        return Url(path="*")
    scheme, rest = _scheme(text)
    rest, mark, asked = rest.partition("?")
    query = asked if mark else None
    if not rest.startswith("/"):
        if not scheme:
            raise ValueError("invalid URI for request")
        return Url(scheme, query=query, opaque=rest)  # such as mailto:someone
    user = host = written = ""
    if (scheme or not rest.startswith("///")) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        user, _, written = authority.rpartition("@")
        host, rest = _host(user, written), slash + path
    _unescaped(rest, "path")
    return Url(scheme, user, host, rest, query, written_host=written)


def _scheme(text: str) -> tuple[str, str]:
    head, colon, rest = text.partition(":")
    if not colon or not re.match(r"[A-Za-z0-9+.:-]", text):
        return "", text
    if not head:
        raise ValueError("missing protocol scheme")
    if _SCHEME.fullmatch(head):
        return head.lower(), rest
    if not head[0].isalpha():
        raise ValueError("first path segment in URL cannot contain colon")
    return "", text


def _host(user: str, host: str) -> str:
    if not _IN_USER.fullmatch(user):
        raise ValueError("net/url: invalid userinfo")
    _unescaped(user, "user")
    if host.startswith("["):
        return _bracketed(host)
    if "[" in host:
        raise ValueError("invalid character '[' in host name")
    name = host.partition(":")[0]
    if not _PORT.fullmatch(host[len(name) :]):
        raise ValueError(f'invalid port "{host[len(name) :]}" after host')
    _check_host(name)
    return _unescaped(name, "host").decode("utf-8", "replace") + host[len(name) :]


def _bracketed(host: str) -> str:
    """An IPv6 address, maybe with a zone, and maybe a port."""
    inside, bracket, port = host[1:].rpartition("]")
    if not bracket:
        raise ValueError("missing ']' in host")
    if not _PORT.fullmatch(port):
        raise ValueError(f'invalid port "{port}" after host')
    address, mark, written = inside.partition(_ZONE)
    zone = _unescaped(written, "zone").decode("utf-8", "replace")
    try:
        IPv6Address(address)
    except AddressValueError:
        raise ValueError(f'invalid host "{host}"') from None
    if "%" in address or (mark and not zone):
        raise ValueError(f'invalid host "{host}"')
    return f"[{address}{'%' if mark else ''}{zone}]{port}"


def _check_host(host: str) -> None:
    found = _NOT_IN_HOST.search(host)
    if found is not None:
        raise ValueError(f'invalid character "{found[0]}" in host name')


def _unescaped(text: str, where: str) -> bytes:
    """The text with its escapes decoded; ValueError for an invalid or misplaced one."""

    def replaced(found: re.Match[str]) -> str:
        meant = chr(int(found[1], 16)) if found[1] is not None else ""
        # Of a host only what is not ASCII is escaped; of a zone, what a host may have anyway, and spaces.
        is_out_of_place = (where == "host" and meant < "\x80") or (
            where == "zone" and meant not in " %" and (meant >= "\x80" or _NOT_IN_HOST.match(meant) is not None)
        )
        if not meant or is_out_of_place:
            start = found.start()
            raise ValueError(f'invalid URL escape "{plain[start : start + 3]}"')
        return meant

    # Bytes as characters of the same number, so that escapes of halves of a character fit in.
    plain = text.encode("utf-8", "replace").decode("latin-1")
    return _ESCAPE.sub(replaced, plain).encode("latin-1")


def _escaped(content: bytes) -> str:
    return "".join(chr(byte) if byte in _KEPT_IN_PATH else f"%{byte:02X}" for byte in content)


def _word(text: str) -> str:
    return _unescaped(text.replace("+", " "), "query").decode("utf-8", "replace")


def _url(value: Mapping[str, Any]) -> Url:
    return parse_url(text_of(value, URL))


def _made(text: str) -> dict[str, str]:
    return made(URL, parse_url(text).text)


FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("isURL", ("STRING",), "BOOL", succeeds(_parsed), False),
    Function("url", ("STRING",), "MAP", _made, False),
    Function("getScheme", ("MAP",), "STRING", lambda value: _url(value).scheme),
    Function("getHost", ("MAP",), "STRING", lambda value: _url(value).host),
    Function("getHostname", ("MAP",), "STRING", lambda value: _url(value).hostname),
    Function("getPort", ("MAP",), "STRING", lambda value: _url(value).port),
    Function("getEscapedPath", ("MAP",), "STRING", lambda value: _url(value).escaped_path),
    Function("getQuery", ("MAP",), "DYN", lambda value: _url(value).values),
)
