"""How many files a process of a pod may open."""

from __future__ import annotations

import resource

from volcano.embedded.agent.runtime.open_files import MAX_OPEN_FILES, open_files_limit


def test_an_ordinary_user_has_the_hard_limit_and_root_may_have_more(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (1024, 4096))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert open_files_limit() == 4096

    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (1024, resource.RLIM_INFINITY))
    assert open_files_limit() == MAX_OPEN_FILES
