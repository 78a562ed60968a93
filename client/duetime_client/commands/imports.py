"""`duetime import`: crontab, celery, eventbridge-scheduler, airflow, kubernetes-cronjobs, github-actions, quartz."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import SilentCall
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, printable
from duetime_client.commands.schedule_files import apply_entries, end_with
from duetime_client.commands.tables import Column, table_of
from duetime_client.importers.airflow import import_airflow
from duetime_client.importers.celery import import_celery
from duetime_client.importers.crontab import entries_of_crontab
from duetime_client.importers.draft import Draft, Finding, ImportOptions, Outcome, Source
from duetime_client.importers.eventbridge import import_account, import_eventbridge
from duetime_client.importers.github_actions import import_github_actions
from duetime_client.importers.kubernetes import import_kubernetes
from duetime_client.importers.quartz import import_quartz
from duetime_client.importers.text_sources import SourceUnreadable, read_source
from duetime_client.manifests.reader import entries_of
from duetime_client.plurals import counted

Importer = Callable[[Draft, Sequence[Source]], None]

app = CommandGroup(
    help="Import schedules of other schedulers; the output is a file of schedules and a report of differences.",
    no_args_is_help=True,
)
_STYLES = {Outcome.DIFFERS: "yellow", Outcome.LOST: "yellow", Outcome.OMITTED: "red"}


@dataclass(frozen=True, slots=True)
class ImportFlags:
    """The options of every import."""

    task_type: Annotated[
        str,
        typer.Option("--type", metavar="TYPE", help="Type of all tasks; default: from names, or command for crontabs."),
    ] = ""
    timezone: Annotated[
        str, typer.Option("--timezone", metavar="ZONE", help="Time zone of entries in files that name no zone.")
    ] = ""
    prefix: Annotated[str, typer.Option("--prefix", metavar="TEXT", help="Prefix of the names of schedules.")] = ""
    with_suspended: Annotated[
        bool, typer.Option("--with-suspended", help="Also import entries that are switched off.")
    ] = False
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", dir_okay=False, help="Write the report: JSON for .json, else text."),
    ] = None
    apply_it: Annotated[bool, typer.Option("--apply", help="Apply the schedules instead of printing them.")] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --apply: change nothing.")] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --apply: do not ask for confirmation.")] = False

    @property
    def options(self) -> ImportOptions:
        """Options for the entries."""
        return ImportOptions(self.task_type, self.timezone, self.prefix, self.with_suspended)


FILES = Annotated[list[str], typer.Argument(metavar="FILE", help="The files; - for standard input.")]


@app.command()
@examples("duetime import crontab /etc/crontab --system --timezone Europe/London > host.jsonl")
def crontab(
    call: SilentCall,
    files: FILES,
    *,
    system: Annotated[bool, typer.Option("--system", help="The crontab has a user column, like /etc/crontab.")] = False,
    flags: ImportFlags,
) -> None:
    """Import crontabs: each line becomes a schedule whose payload is the command."""

    def importer(draft: Draft, sources: Sequence[Source]) -> None:
        for source in sources:
            _import_crontab(draft, source, has_users=system)

    _import(call, files, flags, importer)


@app.command()
@examples("duetime import celery shop/celery.py shop/tasks.py > beat.jsonl")
def celery(call: SilentCall, files: FILES, *, flags: ImportFlags) -> None:
    """Import beat_schedule from Python files without running them, with the options of the tasks in the files."""
    _import(call, files, flags, import_celery)


@app.command("eventbridge-scheduler")
@examples(
    "duetime import eventbridge-scheduler template.yaml > schedules.jsonl",
    "duetime import eventbridge-scheduler --from-account --report report.json > schedules.jsonl",
)
def eventbridge_scheduler(
    call: SilentCall,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]", help="Output of get-schedule, or CloudFormation templates; - for standard input."
        ),
    ] = None,
    *,
    from_account: Annotated[
        bool, typer.Option("--from-account", help="Import all schedules and scheduled rules of the AWS account.")
    ] = False,
    flags: ImportFlags,
) -> None:
    """Import schedules of EventBridge Scheduler and scheduled rules of EventBridge, from files or from an account."""
    if from_account == bool(files):
        raise typer.BadParameter("give either files or --from-account", param_hint="FILE")
    _import(call, files or [], flags, _account_importer() if from_account else import_eventbridge)


@app.command()
@examples("duetime import airflow dags/*.py > dags.jsonl")
def airflow(call: SilentCall, files: FILES, *, flags: ImportFlags) -> None:
    """Import DAGs from Python files without running them; a DAG becomes a schedule of a task or a simple graph."""
    _import(call, files, flags, import_airflow)


@app.command("kubernetes-cronjobs")
@examples("duetime import kubernetes-cronjobs cronjobs.yaml --timezone UTC > cronjobs.jsonl")
def kubernetes_cronjobs(call: SilentCall, files: FILES, *, flags: ImportFlags) -> None:
    """Import Kubernetes CronJobs; the containers become payloads for a handler that you write."""
    _import(call, files, flags, import_kubernetes)


@app.command("github-actions")
@examples("duetime import github-actions .github/workflows/nightly.yml > workflows.jsonl")
def github_actions(call: SilentCall, files: FILES, *, flags: ImportFlags) -> None:
    """Import the schedules of GitHub Actions workflows; the jobs stay with GitHub, or you write handlers for them."""
    _import(call, files, flags, import_github_actions)


@app.command()
@examples("duetime import quartz quartz_data.xml --timezone Europe/London > quartz.jsonl")
def quartz(call: SilentCall, files: FILES, *, flags: ImportFlags) -> None:
    """Import Quartz triggers from job_scheduling_data in XML, and cron expressions from properties."""
    _import(call, files, flags, import_quartz)


def _import(call: SilentCall, files: Sequence[str], flags: ImportFlags, importer: Importer) -> None:
    """Read the files, print the report, and print or apply the schedules; exit code 1 if an entry is not imported."""
    draft = Draft(flags.options)
    importer(draft, list(_sources(draft, files)))
    manifest = draft.manifest()
    findings = sorted(draft.findings, key=lambda each: (each.file, each.line))
    _show(findings, manifest.count("\n"))
    if flags.report is not None:
        _write(flags.report, findings)
    omitted = any(each.outcome is Outcome.OMITTED for each in findings)
    if flags.apply_it:
        with call.client() as client:
            done = apply_entries(client, entries_of(manifest), dry_run=flags.dry_run, yes=flags.yes)
        end_with(done, as_json=False)
    else:
        typer.echo(manifest, nl=False)
    raise typer.Exit(1 if omitted else 0)


def _sources(draft: Draft, files: Sequence[str]) -> Sequence[Source]:
    found = []
    for file in files:
        try:
            found.append(read_source(file))
        except SourceUnreadable as error:
            draft.unreadable(Source(file, ""), str(error), error.line)
    return found


def _import_crontab(draft: Draft, source: Source, *, has_users: bool) -> None:
    options = draft.options
    entries = entries_of_crontab(
        source.text, task_type=options.task_type or "command", timezone=options.timezone or None, has_users=has_users
    )
    is_zone_reported = False
    for entry in entries:
        item = draft.item(source, entry.line, entry.name)
        if entry.fault:
            item.omit(entry.fault)
            continue
        item.fields |= entry.fields
        if not is_zone_reported and "timezone" not in entry.fields:
            item.zone(None, "CRON_TZ", "cron uses the zone of its machine")
            is_zone_reported = True
        draft.add(item)


def _account_importer() -> Importer:
    try:
        # botocore is imported here because it is an extra, and takes longer to import than all other modules.
        import botocore.session  # noqa: PLC0415 - see the line above
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - same
    except ModuleNotFoundError as error:
        raise typer.BadParameter(
            'needs botocore: pip install "duetime-client[aws]"', param_hint="--from-account"
        ) from error

    def importer(draft: Draft, _: Sequence[Source]) -> None:
        try:
            import_account(draft, botocore.session.get_session())
        except (BotoCoreError, ClientError) as error:
            raise typer.BadParameter(str(error), param_hint="--from-account") from error

    return importer


def _show(findings: Sequence[Finding], schedules: int) -> None:
    """Print the report on the error stream, because standard output contains the manifest."""
    err = console(stderr=True)
    columns: list[Column[Finding]] = [
        Column("line", _place, right=True),
        Column("entry", lambda each: each.entry, folds=True),
        Column("part", lambda each: each.field, folds=True),
        Column("outcome", lambda each: Text(each.outcome, style=_STYLES[each.outcome])),
        Column("why", _plain, wraps=True),
    ]
    if findings:
        err.print(table_of(findings, columns))
    counts = Counter(each.outcome for each in findings)
    parts = [counted(schedules, "schedule"), *(f"{counts[each]} {each}" for each in Outcome if counts[each])]
    err.print(printable(", ".join(parts)), soft_wrap=True)


def _place(finding: Finding) -> str:
    return f"{Path(finding.file).name}:{finding.line}" if finding.line else Path(finding.file).name


def _plain(finding: Finding) -> str:
    return finding.text.replace("`", "")


def _write(path: Path, findings: Sequence[Finding]) -> None:
    rows: list[dict[str, Any]] = [asdict(each) for each in findings]
    if path.suffix == ".json":
        text = json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
    else:
        text = "".join(
            f"{each.file}:{each.line}: {' '.join(filter(None, (each.entry, each.field)))}: "
            f"{each.outcome}: {_plain(each)}\n"
            for each in findings
        )
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise typer.BadParameter(f"cannot be written: {error.strerror}", param_hint="--report") from error
