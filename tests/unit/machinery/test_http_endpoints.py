"""The endpoints beside a component: what is answered, and that idle clients cannot take them from others."""

from __future__ import annotations

import asyncio

import aiohttp
import msgspec

from volcano.machinery.connections import ConnectionLimits
from volcano.machinery.http_endpoints import LIMITS, MAX_BODY_BYTES, Routes, health_route, json_response, serving
from volcano.machinery.transport import Request, Response

PER_ADDRESS = 4
SMALL = msgspec.structs.replace(
    LIMITS,
    header_seconds=0.2,
    connections=ConnectionLimits(total=8, anonymous=8, anonymous_per_address=PER_ADDRESS, per_identity=8),
)


async def _echo(request: Request) -> Response:
    return json_response({"query": request.query, "body": request.body.decode()})


async def _broken(_request: Request) -> Response:
    raise ValueError("broken")


ROUTES: Routes = {
    ("GET", "/healthz"): health_route(),
    ("POST", "/echo"): _echo,
    ("GET", "/broken"): _broken,
    ("GET", "/pages/*"): _echo,
}


async def test_a_route_gets_query_and_body():
    async with serving("127.0.0.1:0", ROUTES) as port, aiohttp.ClientSession() as client:
        answer = await client.post(f"http://127.0.0.1:{port}/echo?a=1&b=%20x&a=", data=b"text")

        assert await answer.json() == {"query": [["a", "1"], ["b", " x"], ["a", ""]], "body": "text"}


async def test_what_is_not_served_is_refused_with_its_status():
    async with serving("127.0.0.1:0", ROUTES) as port, aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
        statuses = [
            (await client.get("/nowhere")).status,
            (await client.get("/echo")).status,
            (await client.post("/echo", data=b"x" * (MAX_BODY_BYTES + 1))).status,
            (await client.post("/echo?" + "&".join("a=1" for _ in range(1000)))).status,
            (await client.get("/broken")).status,
            (await client.get("/healthz")).status,
        ]

    assert statuses == [404, 405, 413, 400, 500, 200]


async def test_a_route_may_stand_for_all_paths_below_it():
    async with serving("127.0.0.1:0", ROUTES) as port, aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
        gotten = [
            (await client.get(path)).status for path in ("/pages/a", "/pages/a/b", "/pages/", "/pages", "/pagesa")
        ]
        posted = (await client.post("/pages/a")).status

    assert (gotten, posted) == ([200, 200, 404, 404, 404], 405)


async def test_idle_connections_do_not_lock_others_out():
    async with serving("127.0.0.1:0", ROUTES, limits=SMALL) as port:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(PER_ADDRESS * 4)]

        async with aiohttp.ClientSession() as client:
            assert (await client.get(f"http://127.0.0.1:{port}/healthz")).status == 200
        async with asyncio.timeout(20):
            assert [await reader.read() for reader, _ in idle] == [b""] * len(idle), "closed by number, then by time"
        for _, writer in idle:
            writer.close()
