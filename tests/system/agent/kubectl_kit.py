"""The real kubectl as a test uses it: to its end, on a terminal, or in the background."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import termios
from collections.abc import AsyncIterator
from pathlib import Path


class Kubectl:
    """The real binary, pointed at the embedded server."""

    def __init__(self, kubeconfig: Path, **environment: str) -> None:
        self.kubeconfig = kubeconfig
        home = {"KUBECONFIG": str(kubeconfig), "HOME": str(kubeconfig.parent)}
        self._environment = {**os.environ, **home, **environment}

    def told(self, **environment: str) -> Kubectl:
        """The same with more in its environment."""
        return Kubectl(self.kubeconfig, **environment)

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        """In the background, with pipes to all of its streams."""
        return await asyncio.create_subprocess_exec(
            "kubectl",
            *arguments,
            env=self._environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def __call__(self, *arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        process = await self.start(*arguments)
        async with asyncio.timeout(30):
            out, err = await process.communicate(stdin)
        return process.returncode or 0, out.decode(), err.decode()

    @contextlib.asynccontextmanager
    async def forwarding(self, *arguments: str) -> AsyncIterator[tuple[int, asyncio.subprocess.Process]]:
        """`port-forward` while it runs, and the local port that it chose."""
        process = await self.start("port-forward", *arguments)
        assert process.stdout is not None and process.stderr is not None
        try:
            async with asyncio.timeout(30):
                line = (await process.stdout.readline()).decode()
            assert "Forwarding from" in line, (await process.stderr.read()).decode()
            yield int(line.split(" -> ")[0].rpartition(":")[2]), process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def on_terminal(self, *arguments: str, typed: bytes, size: tuple[int, int] = (24, 80)) -> str:
        """With a terminal, into which something is typed."""
        master, slave = pty.openpty()
        termios.tcsetwinsize(slave, size)
        process = await asyncio.create_subprocess_exec(
            "kubectl", *arguments, env=self._environment, stdin=slave, stdout=slave, stderr=slave
        )
        os.close(slave)
        os.write(master, typed)
        shown = b""
        async with asyncio.timeout(30):
            while True:
                chunk = await asyncio.to_thread(_read, master)
                if not chunk:
                    break
                shown += chunk
            await process.wait()
        os.close(master)
        return shown.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
