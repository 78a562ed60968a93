"""Tests of handlers that are reloaded while the stack runs, and of the secret with which the stack signs its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime_cdk.layers.build import Layer
from duetime_local.deployment import HANDLERS
from duetime_local.handler_reload import HandlerVersions, built
from duetime_local.project import handlers_package
from tests.adapters.targets.receiver import public_key_for, secret_for

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_client import Client
    from duetime_local.stack import Stack

FRESH = """
from duetime.handlers import handler


@handler("fresh")
def fresh(context, payload):
    return "fresh"
"""


def test_the_next_attempt_uses_a_newly_published_layer_of_handlers(
    deployed: Stack, client: Client, tmp_path: Path
) -> None:
    """The next attempt uses a newly published layer of handlers, even if this is the previous layer published again."""
    versions = HandlerVersions(deployed.emulator, deployed.deployment, deployed.handlers)
    former = {HANDLERS: built()[HANDLERS]}
    folder = tmp_path / "python" / handlers_package().name
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(FRESH)
    try:
        versions.publish({HANDLERS: Layer(tmp_path, "fresh-handlers")})
        task = client.tasks.create("fresh", allow_unknown_type=True, wait_seconds=20)
        assert (task.state, task.result) == ("succeeded", "fresh")
    finally:
        versions.publish(former)
    assert client.tasks.create("echo", payload="as before", wait_seconds=20).state == "succeeded"


def test_the_secret_of_an_owner_is_derived_from_that_of_the_stack(deployed: Stack, client: Client) -> None:
    """The API shows an owner's signing secret and public key, which are derived from the stack's secret."""
    stored = deployed.emulator.client("secretsmanager").get_secret_value(
        SecretId=deployed.deployment.outputs["SigningSecretArn"]
    )
    (found,) = client.signing_secrets.list().secrets
    assert found.secret == secret_for("local", stored["SecretString"])
    assert found.public_key == public_key_for("local", stored["SecretString"])
