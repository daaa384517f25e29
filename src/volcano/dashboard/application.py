"""The dashboard: requests to pages, sign-in and sign-out, files, and the stream that tells open pages of changes."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from volcano.api.errors import ApiError
from volcano.api.times import parse_timestamp
from volcano.dashboard.callers import Caller
from volcano.dashboard.changes import ChangeFeed
from volcano.dashboard.job_rows import STATES
from volcano.dashboard.kept_pages import KeptPages
from volcano.dashboard.logins import TokenLogin
from volcano.dashboard.makers import PageRequest
from volcano.dashboard.oidc import PENDING_FOR, OidcLogin, SignInFailed
from volcano.dashboard.open_streams import OpenStreams
from volcano.dashboard.openapi import PLACE as OPENAPI_PLACE
from volcano.dashboard.openapi import openapi_text
from volcano.dashboard.pages import PAGES, WebPage
from volcano.dashboard.rendering import environment, render
from volcano.dashboard.request_checks import check_host, check_origin, own_place
from volcano.dashboard.sessions import FailedLogins, OneTimeToken, Sessions, SignedIn
from volcano.dashboard.static_files import static_file, tag_of, unless_known
from volcano.dashboard.usage_page import usage_csv, usage_page
from volcano.dashboard.view import CallerView, Shared
from volcano.dashboard.watched import Watched
from volcano.dashboard.web import API_PREFIX, HTML, BadWebRequest, WebRequest, plain, problem_in_json, redirect
from volcano.dashboard.writing import FormOutcome, question, write
from volcano.machinery.clock import Clock
from volcano.machinery.ids import Ids
from volcano.machinery.transport import Response

log = logging.getLogger(__name__)

MENU: Final = (
    ("overview", "/", "Overview"),
    ("jobs", "/jobs", "Jobs"),
    ("queues", "/queues", "Queues"),
    ("nodes", "/nodes", "Nodes"),
    ("flows", "/flows", "Flows"),
    ("topology", "/topology", "Topology"),
    ("decisions", "/decisions", "Decisions"),
    ("usage", "/usage", "Usage"),
    ("settings", "/settings", "Settings"),
)
COOKIE_PREFIX: Final = "volcano-dashboard"


class DashboardSettings(msgspec.Struct, frozen=True):
    """`hosts` are the names under which the server may be addressed; empty: any. `port` is part of the cookie's name.

    `owner` makes the caller of the one-time link; None: there is no such link.
    """

    port: int = 0
    hosts: frozenset[str] = frozenset()
    about: str = ""
    is_behind_tls: bool = False  # a proxy in front ends TLS
    owner: Callable[[], Caller] | None = None


class Dashboard:
    """`answer` is the whole application as one function; `close` ends what runs in the background."""

    def __init__(
        self,
        watched: Watched,
        tokens: TokenLogin,
        clock: Clock,
        ids: Ids,
        settings: DashboardSettings | None = None,
        *,
        link: OneTimeToken | None = None,
        oidc: OidcLogin | None = None,
    ) -> None:
        self._watched, self._tokens, self._clock = watched, tokens, clock
        self._settings = settings or DashboardSettings()
        self._link, self._oidc = link, oidc
        self._sessions, self._failures = Sessions(clock, ids), FailedLogins(clock)
        self._known: Shared | None = None
        self._feed = ChangeFeed(watched)
        self._pages = [(page.pattern, page) for page in PAGES]
        self._kept = KeptPages()
        self._streams = OpenStreams()
        self._cookie = f"{COOKIE_PREFIX}-{self._settings.port}"

    async def close(self) -> None:
        await self._feed.close()
        if self._known is not None:
            await self._known.close()
        await self._watched.close()

    async def prepare(self) -> None:
        """What the first page needs, made before somebody asks for it."""
        await self._watched.ready()
        self._shared()
        await self._clock.run(environment)

    def _shared(self) -> Shared:
        if self._known is None:
            self._known = Shared(self._watched)
        return self._known

    # -- requests ------------------------------------------------------------------------------------------------
    async def answer(self, request: WebRequest) -> Response:
        check_host(request, self._settings.hosts)
        path = request.path
        if path == "/healthz":
            return plain(200, "ok")
        if path.startswith("/static/"):
            return static_file(path.removeprefix("/static/"), request)
        if path == OPENAPI_PLACE:
            return Response(200, {"content-type": "application/json"}, openapi_text())
        if path == "/login":
            return await self._login(request)
        if self._oidc is not None and path in ("/login/oidc", "/login/oidc/callback"):
            return await self._login_by_provider(request, self._oidc)
        session = await self._session(request)
        if session is None or not await session.caller.is_valid():
            if session is not None:
                self._sessions.end(session.id)
            return self._to_login(request)
        await self._watched.ready()
        try:
            return await self._signed_in(request, session)
        except ApiError as error:
            if error.status_code == 401:  # the token has expired
                self._sessions.end(session.id)
                return self._to_login(request)
            return self._problem(request, session, error.status_code, error.message)
        except (ConnectionError, TimeoutError) as error:
            return self._problem(request, session, 502, f"the API server cannot be reached: {error}")

    async def _session(self, request: WebRequest) -> SignedIn | None:
        """By cookie; a program that reads JSON may bring the token of the API server with each request instead."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not request.path.startswith(f"{API_PREFIX}/") or request.method == "POST":
            return self._sessions.find(request.cookie(self._cookie))
        name = f"token-{hashlib.blake2b(token.encode(), digest_size=32).hexdigest()}"
        known = self._sessions.find(name)
        if known is not None:
            return known
        if self._failures.too_many(request.address):
            raise BadWebRequest(429, "too many failed attempts; try again in a minute")
        caller = await self._tokens.caller(token)
        if caller is None:
            self._failures.count(request.address)
            return None
        return self._sessions.begin(caller, name)

    async def _signed_in(self, request: WebRequest, session: SignedIn) -> Response:
        if request.method == "POST":
            self._check_write(request, session)
            return await self._write(request, session)
        if request.method not in ("GET", "HEAD"):
            raise BadWebRequest(405, "only GET and POST are known")
        if request.path == "/live":
            return self._streams.answer(session, self._feed.follow(request.query.get("topics", "").split(",")))
        is_json = request.path.startswith(f"{API_PREFIX}/")
        path = request.path.removeprefix(API_PREFIX) if is_json else request.path
        if path.endswith("/log/stream"):
            return self._streams.log(request, session)
        if path == "/usage.csv":
            return await self._csv(request, session)
        for pattern, page in self._pages:
            match = pattern.fullmatch(path if path != "/overview" else "/")
            if match is not None and (page.has_json or not is_json):
                return await self._page(page, match.groupdict(), request, session, as_json=is_json)
        return self._outcome(request, session, question(path), f"there is no page {request.path}")

    async def _page(
        self, page: WebPage, names: dict[str, str], request: WebRequest, session: SignedIn, *, as_json: bool
    ) -> Response:
        past = _moment(request.query.get("at", "")) if page.then is not None else None
        version = tuple(self._watched.versions[topic] for topic in page.topics)
        second = int(self._clock.monotonic()) if page.topics else None
        key = (request.path, tuple(request.query.items()), request.wants_part, version, second)
        kept = await self._kept.find(key, session.id, session.caller) if page.topics else None
        if kept is not None:
            return unless_known(kept, request)
        view = CallerView(self._shared(), session.caller)
        asked = PageRequest(view, names, request)
        model = await (page.then(asked, past) if page.then is not None and past is not None else page.make(asked))
        if as_json:
            return Response(200, {"content-type": "application/json"}, msgspec.json.encode(model))
        response = self._html(
            page.template,
            request,
            session,
            model=model,
            section=page.section,
            title=page.title.format(**names),
            topics="" if past is not None else ",".join(page.topics),
            past=past,
        )
        if page.topics:
            is_for_others = page.is_of_objects and request.wants_part and past is None
            self._kept.keep(key, session.id, response, view.rights if is_for_others else None)
        return unless_known(response, request)

    async def _csv(self, request: WebRequest, session: SignedIn) -> Response:
        page = await usage_page(session.caller.client, request.query, self._clock.now())
        headers = {"content-type": "text/csv; charset=utf-8", "content-disposition": 'attachment; filename="usage.csv"'}
        return Response(200, headers, usage_csv(page).encode())

    def _html(
        self, template: str, request: WebRequest, session: SignedIn | None, *, status: int = 200, **values: Any
    ) -> Response:
        shown = {
            "menu": MENU,
            "states": STATES,
            "user": session.caller.name if session is not None else "",
            "secret": session.secret if session is not None else "",
            "path": request.path,
            "query": request.query,
            "now": self._clock.now(),
            "about": self._settings.about,
            "layout": "part.html" if request.wants_part else "layout.html",
            "topics": "",
            "section": "",
            "past": None,
            "hour": timedelta(hours=1),
            **values,
        }
        body = render(template, shown).encode()
        return Response(status, {**HTML, "etag": tag_of(body)}, body)

    def _problem(self, request: WebRequest, session: SignedIn | None, status: int, message: str) -> Response:
        if request.path.startswith("/api/"):
            return problem_in_json(status, message)
        return self._html("problem.html", request, session, status=status, title=f"{status}", message=message)

    # -- sign-in -------------------------------------------------------------------------------------------------
    async def _login(self, request: WebRequest) -> Response:
        if self._failures.too_many(request.address):
            return self._login_page(request, 429, "Too many failed attempts. Try again in a minute.")
        given = request.form.get("token", "") if request.method == "POST" else request.query.get("token", "")
        if request.method == "POST":
            check_origin(request)
        if not given:
            if request.method == "POST":
                return self._login_page(request, 401, "Enter a token.")
            return self._login_page(request, 200, "")
        caller: Caller | None = None
        if self._link is not None and self._settings.owner is not None and self._link.take(given):
            caller = self._settings.owner()
        elif request.method == "POST":
            caller = await self._tokens.caller(given)
        if caller is None:
            self._failures.count(request.address)
            return self._login_page(request, 401, "This token is not accepted. A link signs in only once.")
        return redirect(own_place(request.query.get("next", "/")), {"set-cookie": self._begin(caller, request)})

    def _begin(self, caller: Caller, request: WebRequest) -> str:
        """The cookie of a new session."""
        session = self._sessions.begin(caller)
        return f"{self._cookie}={session.id}; Path=/; HttpOnly; SameSite=Strict{self._secure(request)}"

    def _secure(self, request: WebRequest) -> str:
        return "; Secure" if request.is_tls or self._settings.is_behind_tls else ""

    async def _login_by_provider(self, request: WebRequest, oidc: OidcLogin) -> Response:
        if request.method != "GET":
            raise BadWebRequest(405, "only GET is known here")
        if self._failures.too_many(request.address):
            return self._login_page(request, 429, "Too many failed attempts. Try again in a minute.")
        name = f"{self._cookie}-oidc"
        try:
            if request.path == "/login/oidc":
                scheme = "https" if self._secure(request) else "http"
                here = f"{scheme}://{request.headers.get('host', '')}/login/oidc/callback"
                place, browser = await oidc.begin(here, own_place(request.query.get("next", "/")))
                # Lax: the provider's redirect is a navigation from another site.
                cookie = f"{name}={browser}; Path=/login; Max-Age={int(PENDING_FOR.total_seconds())}; HttpOnly"
                return redirect(place, {"set-cookie": f"{cookie}; SameSite=Lax{self._secure(request)}"})
            token, place = await oidc.finish(request.query, request.cookie(name))
            caller = await self._tokens.caller(token)
        except SignInFailed as error:
            self._failures.count(request.address)
            return self._login_page(request, 401, str(error))
        if caller is None:
            self._failures.count(request.address)
            text = f"{oidc.name} knows you, but the API server does not accept its token"
            return self._login_page(request, 401, f"{text}: both have to name the same issuer and client.")
        # A page instead of a redirect: a browser keeps a Strict cookie back where a chain began at another site.
        page = self._html("signed_in.html", request, None, title="Signed in", refresh=place)
        page.headers["set-cookie"] = self._begin(caller, request)
        return page

    def _login_page(self, request: WebRequest, status: int, message: str) -> Response:
        values = {
            "title": "Sign in",
            "message": message,
            "has_link": self._link is not None,
            "provider": self._oidc.name if self._oidc is not None else "",
            "place": request.query.get("next", ""),
        }
        return self._html("login.html", msgspec.structs.replace(request, headers={}), None, status=status, **values)

    def _to_login(self, request: WebRequest) -> Response:
        if request.path.startswith("/api/"):
            return self._problem(request, None, 401, "sign in first, or bring a token: Authorization: Bearer TOKEN")
        if request.path == "/live" or request.wants_part:
            return plain(401, "sign in first")
        if request.method != "GET":
            return redirect("/login")
        from urllib.parse import quote, urlencode

        place = request.path + (f"?{urlencode(request.query)}" if request.query else "")
        return redirect("/login" if place == "/" else f"/login?next={quote(place, safe='')}")

    def _check_write(self, request: WebRequest, session: SignedIn) -> None:
        check_origin(request)
        if not hmac.compare_digest(request.form.get("secret", "").encode(), session.secret.encode()):
            raise BadWebRequest(403, "the form is not of this session; load the page again")

    async def _write(self, request: WebRequest, session: SignedIn) -> Response:
        if request.path == "/logout":
            self._sessions.end(session.id)
            return redirect("/login", {"set-cookie": f"{self._cookie}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"})
        outcome = await write(session.caller.client, request.path, request.form)
        return self._outcome(request, session, outcome, f"there is no action {request.path}")

    def _outcome(self, request: WebRequest, session: SignedIn, outcome: FormOutcome | None, otherwise: str) -> Response:
        if outcome is None:
            return self._problem(request, session, 404, otherwise)
        if outcome.place:
            return redirect(outcome.place)
        values = {"model": outcome.model, "title": outcome.title, "section": outcome.section}
        return self._html(outcome.template, request, session, status=outcome.status, **values)


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise BadWebRequest(400, f"at: {error}") from error
