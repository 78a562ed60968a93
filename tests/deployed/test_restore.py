"""A test in which the table of a deployed stack is restored, and the stack's functions use the restored table.

The embedded AWS restores the table's state at the start of the restore, whatever time is requested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from duetime.adapters.dynamodb.restore import DynamoTableRestore
from duetime.composition import Platform
from duetime.composition.recovery import restore_of
from duetime.domain.operating_parameters import FENCES_PER_EPOCH
from duetime.domain.restore import AfterRestore
from duetime.environment_variables import Variable
from duetime.ports.restore import TableStatus
from duetime_client import Client
from duetime_client.errors import ApiError
from duetime_local import stack
from duetime_local.terminal import Display
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_local.emulator import Emulator
    from duetime_local.stack import Stack

pytestmark = pytest.mark.deployed


@dataclass(frozen=True)
class _Clients:
    """Clients of the embedded AWS with the same interface as an operator command's AWS clients."""

    emulator: Emulator

    def dynamodb(self) -> Any:  # noqa: ANN401 - of boto3
        """A client of DynamoDB."""
        return self.emulator.client("dynamodb")

    def s3(self) -> Any:  # noqa: ANN401 - of boto3
        """A client of S3."""
        return self.emulator.client("s3")


def _use(running: Stack, replaced: str, table: str) -> None:
    """Give all functions the restored table and the new epoch, as a deployment does."""
    lambdas = running.emulator.client("lambda")
    for function in lambdas.list_functions()["Functions"]:
        variables = dict(function.get("Environment", {}).get("Variables", {}))
        if variables.get(Variable.TABLE) == replaced:
            variables |= {Variable.TABLE: table, Variable.EPOCH: "1"}
            name = function["FunctionName"]
            lambdas.update_function_configuration(FunctionName=name, Environment={"Variables": variables})


@pytest.mark.slow
def test_a_deployed_stack_continues_with_a_restored_table() -> None:
    """After a restore, a lease from the lost table is refused, and leased and later tasks get fences of epoch 1."""
    with stack.running(Display(Console(quiet=True)), port=0) as running, Client(running.ready.api_url) as client:
        leased = client.tasks.create("pulled", payload={"first": 0}, target={"kind": "pull"})
        later = client.tasks.create("echo", payload={"n": 1}, delay_seconds=45)
        (lease,) = client.leases.acquire(["pulled"], worker="old", lease_seconds=300, wait_seconds=10)
        replaced = running.deployment.outputs["TableName"]
        restore = DynamoTableRestore(running.emulator.client("dynamodb"))
        restore.begin(replaced, "restored", 0)
        assert until(lambda: restore.status("restored") is TableStatus.READY)
        assert restore.complete(replaced, "restored", 1)
        bucket = running.deployment.outputs["BucketName"]
        found: list[Mapping[str, str]] = []
        platform = Platform(clients=_Clients(running.emulator))  # type: ignore[arg-type]  # has the clients that are used
        work = restore_of("restored", replaced, bucket, 1, AfterRestore.RERUN, found.append, at=0, platform=platform)
        work.stop()
        report = work.take_over()
        assert report.taken_over >= 2
        assert {line["id"] for line in found} >= {leased.id}
        _use(running, replaced, "restored")
        assert until(lambda: client.tasks.get(leased.id).fence > FENCES_PER_EPOCH)
        with pytest.raises(ApiError) as refused:
            client.leases.complete(lease.id, result=1)
        assert refused.value.status == 409
        client.switches.delete("all", "all")
        assert until(lambda: client.tasks.get(later.id).state == "succeeded", 300)
        # A tick sends the task's message, and a tick can take many seconds on a slow machine.
        wanted: Any = {"worker": "new", "lease_seconds": 60, "wait_seconds": 20}
        (again,) = until(lambda: client.leases.acquire(["pulled"], **wanted), 300)
        assert again.task.id == leased.id
        client.leases.complete(again.id, result=2)
        assert client.tasks.get(leased.id).state == "succeeded"
        assert client.tasks.get(later.id).fence > FENCES_PER_EPOCH
