"""`duetime region` adds a standby Region, shows which Region is active, and lets the other Region take over."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, timedelta
from itertools import permutations
from typing import TYPE_CHECKING, Annotated, Any

import boto3
import typer
from botocore.exceptions import BotoCoreError, ClientError

from duetime.composition.recovery import TwoRegions, platform_in, record_in, takeover_of
from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import REGION_OVERLAP
from duetime.domain.times import MINUTE, SECOND, from_datetime, to_iso
from duetime.services.region_takeover import RegionsDiverge, TakeoverReport
from duetime_cdk.archive import REPLICATED
from duetime_cdk.bucket_replication import RegionalBucket
from duetime_cdk.stack_resources import StackUnreadable, outputs_of
from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.document_output import AsJson  # noqa: TC001 - typer reads the annotations
from duetime_client.commands.messages import show_error
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import say, show_json
from duetime_client.commands.progress_bars import counting_bar
from duetime_client.errors import ClientError as CommandError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.regions import ActiveRegion
    from duetime.domain.times import Millis
    from duetime.services.region_takeover import RegionTakeover

app = CommandGroup(help="Add a standby Region, and let the other Region take over.", no_args_is_help=True)
DECLINED = 3
"""Exit code if the user did not confirm, in which case nothing was done."""
_LOOK_SECONDS = 15

Stack = Annotated[str, typer.Option("--stack", metavar="STACK", help="The stack; it has this name in both Regions.")]


class RegionsRejected(CommandError):
    """The command cannot be carried out."""


@dataclass(frozen=True, slots=True)
class _ClockOfCommand:
    """A `duetime.ports.runtime.Clock` that uses the command's clock."""

    clock: Clock

    def now(self) -> Millis:
        """The current time."""
        return from_datetime(self.clock.now().astimezone(UTC))

    def sleep_until(self, at: Millis) -> None:
        """Wait until a time."""
        if (left := at - self.now()) > 0:
            self.clock.sleep(timedelta(milliseconds=left).total_seconds())


@app.command("add")
@examples("duetime region add --stack duetime-prod --region eu-central-1")
def add(
    context: typer.Context,
    *,
    stack: Stack,
    region: Annotated[str, typer.Option("--region", metavar="REGION", help="The second Region.")],
) -> None:
    """Replicate the table of a deployment to a second Region; print the settings of the stacks.

    Run this command in the Region of the deployment. It can be repeated, and waits for an addition that has begun.
    """
    with _Failures():
        outputs, first = outputs_of(stack), boto3.Session().region_name or ""
        if region == first:
            raise RegionsRejected(f"the deployment is in {first} itself; name another Region")
        table, clock = outputs["TableName"], context.ensure_object(Clock)
        here, there = boto3.client("dynamodb"), boto3.client("dynamodb", region_name=region)
        described = here.describe_table(TableName=table)["Table"]
        if _state_of(there, table) is None and not _is_replicated(described, region):
            here.update_table(TableName=table, ReplicaUpdates=[{"Create": {"RegionName": region}}])
        say(f"1. {table} is replicated to {region}; this takes minutes, or hours for a large table")
        while _state_of(there, table) != "ACTIVE":
            clock.sleep(_LOOK_SECONDS)
        # Each replica has its own setting for continuous backups.
        there.update_continuous_backups(
            TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
        if described.get("DeletionProtectionEnabled"):
            there.update_table(TableName=table, DeletionProtectionEnabled=True)
        say("2. the replica has its own continuous backup")
        stream = there.describe_table(TableName=table)["Table"].get("LatestStreamArn", "")
        say(f"Now deploy in {first} with this setting:")
        say(f'    regions=("{first}", "{region}"),')
        say(f"Then deploy a stack with the same name in {region}, with this setting and:")
        say(f'    table="{table}",')
        say(f'    table_stream_arn="{stream}",')
        say(f"Then replicate large contents and the archive: duetime region replicate --stack {stack}")


@app.command("replicate")
@examples("duetime region replicate --stack duetime-prod")
def replicate(*, stack: Stack) -> None:
    """Replicate contents above 200 KB and the archive between the buckets of both Regions, in both directions.

    S3 replicates objects written from now on; the command copies existing objects that are missing. The command can be
    repeated.
    """
    with _Failures():
        pairs = _buckets(_outputs(_deployment(stack, ""), stack))
        for buckets in pairs.values():
            for region, bucket in buckets.items():
                if not bucket.role:
                    raise RegionsRejected(f"{stack} in {region} was deployed without `regions`: deploy it again")
                if not bucket.is_versioned:
                    raise RegionsRejected(f"{bucket.name} in {region} keeps no versions: enable versioning")
        directions = [(here, there) for buckets in pairs.values() for here, there in permutations(buckets.items(), 2)]
        for (region, bucket), (other, target) in directions:
            bucket.replicate_to(target)
            say(f"{bucket.name} is replicated from {region} to {other}")
        with counting_bar() as bar:
            row = bar.add_task("comparing objects", total=None)
            copied = [
                bucket.copy_missing(target, lambda done: bar.advance(row, done))
                for (_, bucket), (_, target) in directions
            ]
        say(f"{sum(copied)} earlier objects were copied")


_BUCKETS = {"contents": ("BucketName", ("",)), "archive": ("ArchiveBucketName", REPLICATED)}
"""For each kind of bucket, the output with the bucket's name, and the key prefixes of replicated objects."""


def _outputs(deployment: TwoRegions, stack: str) -> dict[str, Mapping[str, str]]:
    """The outputs of the stacks by Region."""
    return {region: outputs_of(stack, region) for region in deployment.names}


def _buckets(outputs: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, RegionalBucket]]:
    """The buckets for contents, and for the archive if both Regions have an archive, by kind and Region."""
    found: dict[str, dict[str, RegionalBucket]] = {}
    for kind, (output, prefixes) in _BUCKETS.items():
        if not outputs or not all(each.get(output) for each in outputs.values()):
            continue
        found[kind] = {
            region: RegionalBucket(
                boto3.client("s3", region_name=region),
                each[output],
                each.get("ReplicationRoleArn", ""),
                each.get("KmsKeyArn", ""),
                prefixes,
            )
            for region, each in outputs.items()
        }
    return found


def _state_of(client: Any, table: str) -> str | None:  # noqa: ANN401 - of boto3
    try:
        return str(client.describe_table(TableName=table)["Table"]["TableStatus"])
    except client.exceptions.ResourceNotFoundException:
        return None


def _is_replicated(described: Any, region: str) -> bool:  # noqa: ANN401 - same
    return any(each["RegionName"] == region for each in described.get("Replicas", []))


@dataclass(frozen=True, slots=True)
class Side:
    """One Region's view of the deployment.

    Attributes:
        region: the Region's name.
        is_reachable: whether the Region responds.
        active: the Region that this Region considers active; empty if this Region does not respond.
        epoch: epoch of the last takeover that the Region knows.
        is_open: whether the active Region processes tasks; during an incomplete takeover, no Region does.
        since: when the last takeover began.
    """

    region: str
    is_reachable: bool
    active: str = ""
    epoch: int = 0
    is_open: bool = False
    since: str = ""


@app.command("status")
@examples("duetime region status --stack duetime-prod", "duetime region status --stack duetime-prod --count")
def status(
    context: typer.Context,
    *,
    stack: Stack,
    region: Annotated[str, typer.Option("--region", metavar="REGION", help="Read the stack here.")] = "",
    count: Annotated[bool, typer.Option("--count", help="Count running tasks; reads the whole table.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show which Region is active, the replication lag, and what a takeover now would repeat or lose.

    The command writes an item and waits until the item arrives in the other Region. Exit codes: 0 the Regions agree; 1
    they disagree, a Region does not respond, or the item does not arrive.
    """
    with _Failures():
        deployment = _deployment(stack, region)
        sides = [_side(deployment, each, _ClockOfCommand(context.ensure_object(Clock))) for each in deployment.names]
        reachable = [each for each in sides if each.is_reachable]
        latest = max(reachable, key=lambda each: each.epoch, default=None)
        if latest is None:
            raise RegionsRejected("no Region answers")
        agree = len({(each.active, each.epoch, each.is_open) for each in sides}) == 1
        standby = deployment.other_than(latest.active)
        work = _takeover(deployment, standby, context.ensure_object(Clock), is_forced=False, drain=0)
        lag = _lag(work) if len(reachable) == len(sides) else None
        running = work.source.records.running_tasks(work.runtime.now()) if count and lag is not None else None
        outputs: Mapping[str, Mapping[str, str]] = _outputs(deployment, stack) if len(reachable) == len(sides) else {}
        replicated = _replicated(outputs)
        document = {
            "active": latest.active,
            "standby": standby,
            "epoch": latest.epoch,
            "is_open": latest.is_open,
            "agree": agree,
            "regions": [asdict(each) for each in sides],
            "replication_lag_ms": lag,
            "contents_replicated": replicated.get("contents"),
            "archive_replicated": replicated.get("archive"),
            "archives": [each for each, found in outputs.items() if found.get(_BUCKETS["archive"][0])],
            "running_tasks": running,
            "repeated_minutes": REGION_OVERLAP // MINUTE,
        }
        if as_json:
            show_json(document)
        else:
            _show_status(document, sides)
    if not agree or lag is None:
        raise typer.Exit(1)


def _replicated(outputs: Mapping[str, Mapping[str, str]]) -> dict[str, bool]:
    """Whether the buckets of each kind are replicated in both directions."""
    return {
        kind: all(bucket.replicates_to(other) for bucket, other in permutations(buckets.values(), 2))
        for kind, buckets in _buckets(outputs).items()
    }


def _lag(work: RegionTakeover) -> Millis | None:
    try:
        return work.replication_lag()
    except RegionsDiverge:
        return None


def _show_status(document: dict[str, Any], sides: list[Side]) -> None:
    works = (
        "is active"
        if document["is_open"]
        else "is taking over: no Region processes tasks until the takeover is run again"
    )
    say(f"{document['active']} {works} (epoch {document['epoch']})")
    for each in sides:
        if not each.is_reachable:
            say(f"{each.region} does not respond")
        elif (each.active, each.epoch) != (document["active"], document["epoch"]):
            say(f"{each.region} is not updated yet: it considers {each.active} active (epoch {each.epoch})")
    lag, running = document["replication_lag_ms"], document["running_tasks"]
    say("nothing is replicated" if lag is None else f"an item is replicated within {lag} ms")
    if document["contents_replicated"] is False:
        say("contents above 200 KB are not replicated: run `duetime region replicate`")
    if document["archive_replicated"] is False:
        say("the archive is not replicated: run `duetime region replicate`")
    if len(document["archives"]) == 1:
        (has,) = document["archives"]
        (lacks,) = (each.region for each in sides if each.region != has)
        say(f"only {has} has an archive: tasks that {lacks} removes by TTL are in no archive")
        say(f"  deploy {lacks} with the `archive_days` of {has}, then run `duetime region replicate`")
    say(f"A takeover by {document['standby']} now:")
    late = (
        "data that is not replicated is late, or lost with the Region"
        if lag is None
        else "loses nothing if it is planned"
    )
    say(f"  {late}")
    say(f"  {'running tasks run' if running is None else f'{running} running tasks run'} again if it is forced")
    say(f"  follow-ups of tasks that ended in the last {document['repeated_minutes']} minutes are repeated")


@app.command("takeover")
@examples(
    "duetime region takeover --stack duetime-prod --to eu-central-1",
    "duetime region takeover --stack duetime-prod --to eu-central-1 --force --yes",
)
def takeover(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    *,
    stack: Stack,
    to: Annotated[str, typer.Option("--to", metavar="REGION", help="The Region that takes over.")],
    force: Annotated[
        bool, typer.Option("--force", help="Leave the other Region unchanged, because it is lost.")
    ] = False,
    drain_seconds: Annotated[int, typer.Option(min=0, max=43_200, help="How long running tasks may continue.")] = 300,
    segments: Annotated[int, typer.Option(min=1, max=64, help="Parallel reads of the table.")] = 8,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let a Region take over: stop the other Region, take over the tasks, and begin to process tasks.

    After an interruption, run the command again. When a lost Region has returned, run the command once more with
    --force to take over tasks that arrived late. Exit codes: 0 the Region is active; 1 failed; 3 not confirmed.
    """
    with _Failures():
        deployment = _deployment(stack, to)
        if to not in deployment.names:
            raise RegionsRejected(f"--to: the Regions of {stack} are {' and '.join(deployment.names)}")
        if not yes and not _confirmed(deployment, to, force=force, drain_seconds=drain_seconds):
            say("Nothing was done.")
            raise typer.Exit(DECLINED)
        drain = drain_seconds * SECOND
        work = _takeover(deployment, to, context.ensure_object(Clock), is_forced=force, drain=drain)
        tell = say if not as_json else (lambda _line: None)
        region = work.begin(tell)
        if not region.is_open:
            work.carry_cursors()
        tell(f"{to} is named as the active Region, in epoch {region.epoch}")
        report = _swept(work, region, segments)
        work.open(region)
        if as_json:
            show_json(_document(to, region, report))
        else:
            _show_report(to, report)


def _confirmed(deployment: TwoRegions, to: str, *, force: bool, drain_seconds: int) -> bool:
    other = deployment.other_than(to)
    say(f"{to} takes over from {other}.")
    if force:
        say(f"{other} is left as it is: if it still works, tasks run in both Regions until it receives the change.")
    else:
        say(f"{other} starts nothing new; running tasks have {drain_seconds} seconds to end, then they run again.")
    if not sys.stdin.isatty():
        show_error(RegionsRejected("there is no terminal to confirm on: give --yes"))
        return False
    return typer.confirm("Take over?")


def _swept(work: RegionTakeover, region: ActiveRegion, segments: int) -> TakeoverReport:
    total = TakeoverReport()
    with counting_bar() as bar, ThreadPoolExecutor(segments) as pool:
        row = bar.add_task("taking over", total=None)

        def one(segment: int) -> TakeoverReport:
            return work.take_over(region, segment, segments, lambda scanned: bar.advance(row, scanned))

        for report in pool.map(one, range(segments)):
            total.add(report)
    return total


def _document(to: str, region: ActiveRegion, report: TakeoverReport) -> dict[str, Any]:
    kinds = {kind: report.tasks[kind] for kind in ("open", "cut_off", "completed_again", "cancelled")}
    more = {"schedules": report.schedules, "scanned": report.scanned, "unreadable": report.unreadable}
    return {"active": to, "epoch": region.epoch, "tasks": kinds, **more}


def _show_report(to: str, report: TakeoverReport) -> None:
    say(f"{report.tasks['open']} open tasks are taken over, and {report.schedules} schedules")
    say(f"{report.tasks['cut_off']} tasks were running: they run again")
    say(f"{report.tasks['completed_again']} tasks had just ended: their follow-ups are repeated")
    if cancelled := report.tasks["cancelled"]:
        say(f"{cancelled} nodes are cancelled: their topology, or its plan, was not replicated (PlanLost)")
    for key in report.unreadable:
        say(f"the record {key} cannot be read, and stays as it is")
    say(f"{to} is active. Send requests there: change DUETIME_URL, or the DNS record of your domain.")


def _deployment(stack: str, region: str) -> TwoRegions:
    outputs = outputs_of(stack, region)
    if not (names := tuple(outputs.get("Regions", "").split())):
        raise RegionsRejected(f"{stack} has one Region: `duetime region add` adds another")
    return TwoRegions(names, outputs["TableName"], outputs["BucketName"], int(outputs.get("Epoch", "0")))


def _takeover(deployment: TwoRegions, target: str, clock: Clock, *, is_forced: bool, drain: Millis) -> RegionTakeover:
    platforms = {each: platform_in(each, _ClockOfCommand(clock)) for each in deployment.names}
    return takeover_of(deployment, target, platforms, is_forced=is_forced, drain=drain)


def _side(deployment: TwoRegions, region: str, clock: _ClockOfCommand) -> Side:
    try:
        found = record_in(platform_in(region, clock), deployment.table)
    except Unavailable:
        return Side(region, is_reachable=False)
    if found is None:
        return Side(region, is_reachable=True, active=deployment.names[0], epoch=deployment.epoch, is_open=True)
    return Side(region, True, found.name, found.epoch, found.is_open, to_iso(found.since))  # noqa: FBT003 - in order


class _Failures:
    """Reports AWS errors and Region errors as errors of the command."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, RegionsDiverge | StackUnreadable | Unavailable | BotoCoreError | ClientError):
            show_error(RegionsRejected(str(error)))
            raise typer.Exit(1) from None
        if isinstance(error, CommandError):
            show_error(error)
            raise typer.Exit(1) from None
