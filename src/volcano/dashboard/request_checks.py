"""Whether a request may come from where it comes: the host that it names, and the site of its form."""

from __future__ import annotations

from urllib.parse import urlsplit

from volcano.dashboard.web import BadWebRequest, WebRequest


def check_host(request: WebRequest, allowed: frozenset[str]) -> None:
    """`allowed`: the names under which the server may be addressed; empty: any."""
    host = request.headers.get("host", "")
    name = urlsplit(f"//{host}").hostname or ""
    if allowed and name not in allowed:
        raise BadWebRequest(421, f"this server is not {name}")


def check_origin(request: WebRequest) -> None:
    origin, host = request.headers.get("origin", ""), request.headers.get("host", "")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise BadWebRequest(403, "forms are taken from this site's own pages only")
    if origin and origin != "null" and urlsplit(origin).netloc != host:
        raise BadWebRequest(403, "forms are taken from this site's own pages only")


def own_place(place: str) -> str:
    """A path of this site; anything else leads to the first page."""
    is_own = place.startswith("/") and not place.startswith(("//", "/\\")) and "\n" not in place and "\r" not in place
    return place if is_own else "/"
