"""The webhook manager: the pod webhook's configuration is reloaded."""

import asyncio

from webhook_site import DEADLINE, SOON, site


async def test_the_pod_webhooks_configuration_is_read_again_when_it_changes(tmp_path, caplog):
    file = tmp_path / "admission.yaml"
    file.write_text("# nothing\n")
    pod = {"metadata": {"name": "p", "namespace": "lab"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}

    async with site(tmp_path, configuration=file, file_poll_interval=SOON) as webhook:
        assert "patch" not in await webhook.ask("/pods/mutate", pod)
        file.write_text(
            "resourceGroups: [{resourceGroup: a, object: {key: namespace, value: [lab]}, schedulerName: volcano}]"
        )

        async with asyncio.timeout(DEADLINE):
            while "patch" not in await webhook.ask("/pods/mutate", pod):
                continue
        file.write_text("resourceGroups: 5")
        async with asyncio.timeout(DEADLINE):
            while "keeping the pod webhook's configuration" not in caplog.text:
                await webhook.ask("/pods/mutate", pod)

        assert "patch" in await webhook.ask("/pods/mutate", pod), "a broken file changes nothing"
