"""Certificates of a running component: renewed in time and loaded again when their files change, without a restart.

An SSL context that gets a new certificate shows it on new connections; those that are open go on undisturbed.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from volcano.machinery.clock import Clock

log = logging.getLogger(__name__)

CHECK_INTERVAL: Final = timedelta(minutes=1)
"""How often files are looked at; a renewal is due 30 days before a certificate ends, so it is never late."""


class FileState(NamedTuple):
    """Differs whenever a file is replaced or written, also through a symbolic link as Secrets are mounted."""

    modified_ns: int
    size: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> FileState:
        state = path.stat()
        return cls(state.st_mtime_ns, state.st_size, state.st_ino)


class FollowedPair:
    """A certificate with its key in one or two PEM files, loaded into a context again whenever the files change.

    `renew` is called before each look: for certificates that the component makes itself.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        certificate: Path,
        key: Path | None = None,
        *,
        renew: Callable[[datetime], Any] | None = None,
    ) -> None:
        self._context, self._certificate, self._key, self._renew = context, certificate, key, renew
        self._loaded = self._states()

    def refresh(self, now: datetime) -> bool:
        """Renew where that is due, and load what has changed; whether something was loaded. Errors are logged."""
        try:
            if self._renew is not None:
                self._renew(now)
            states = self._states()
            if states == self._loaded:
                return False
            trial = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # an error must leave the context in use as it is
            trial.load_cert_chain(self._certificate, self._key)
            self._context.load_cert_chain(self._certificate, self._key)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            log.warning("keeping the certificate in use instead of %s: %s", self._certificate, error)
            return False
        self._loaded = states
        log.info("%s was loaded again", self._certificate)
        return True

    @asynccontextmanager
    async def followed(self, clock: Clock) -> AsyncIterator[ssl.SSLContext]:
        """Follow the files while the block runs; yields the context."""
        following = asyncio.ensure_future(self.follow(clock))
        try:
            yield self._context
        finally:
            following.cancel()

    async def follow(self, clock: Clock) -> None:
        """Until cancelled."""
        while True:
            await clock.sleep(CHECK_INTERVAL)
            now = clock.now()
            await clock.run(lambda: self.refresh(now))  # noqa: B023

    def _states(self) -> tuple[FileState, ...]:
        return tuple(FileState.of(path) for path in (self._certificate, self._key) if path is not None)
