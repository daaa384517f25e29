"""The accounts that a container sees."""

from __future__ import annotations

from volcano.embedded.agent.runtime.pod_accounts import group_with, passwd_with

PASSWD = "root:x:0:0:root:/root:/bin/bash\nalice:x:1000:100:Alice:/home/alice:/bin/zsh\n"


def test_a_user_without_an_account_gets_one():
    assert passwd_with(PASSWD, (65532, 65532), "/root") == PASSWD + "nonroot:x:65532:65532:nonroot:/root:/bin/sh\n"
    assert group_with("root:x:0:\n", 65532) == "root:x:0:\nnonroot:x:65532:\n"


def test_an_account_keeps_its_name_and_has_its_home_where_the_container_has_it():
    lines = passwd_with(PASSWD, (1000, 100), "/root").splitlines()

    assert lines == ["root:x:0:0:root:/root:/bin/bash", "alice:x:1000:100:alice:/root:/bin/sh"]
    assert group_with("users:x:100:\n", 100) == "users:x:100:\n"


def test_another_users_name_is_taken_over():
    lines = passwd_with("nonroot:x:5:5::/:/bin/sh\n", (65532, 65532), "/root").splitlines()

    assert lines == ["nonroot:x:65532:65532:nonroot:/root:/bin/sh"]
