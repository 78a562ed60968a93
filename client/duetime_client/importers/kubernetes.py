"""Imports Kubernetes CronJobs as schedules.

Source: Kubernetes API Reference, CronJobSpec, JobSpec and PodSpec of `batch/v1`, and "CronJob": runs overlap unless
`concurrencyPolicy` says otherwise; a job is retried six times, first after 10 s, and each wait is twice the previous
wait, up to six minutes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from duetime_client.importers.draft import LONGEST_PERIOD, shown
from duetime_client.importers.yaml_source import Fields, line_of, readable_documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from duetime_client.importers.draft import Draft, Item, Source

_OVERLAPS = {"Allow": "allow_all", "Forbid": "skip", "Replace": "replace_other"}
_ZONED = re.compile(r"(?:CRON_)?TZ=(\S+)\s+(.*)")
_EVERY = re.compile(r"@every\s+(\S+)")
_HELPERS = "app.kubernetes.io/"
_BACKOFF_LIMIT = 6
_FIRST_WAIT, _LONGEST_WAIT = 10, 360
_SPEC = frozenset({"schedule", "timeZone", "concurrencyPolicy", "suspend", "startingDeadlineSeconds", "jobTemplate"})
_OBJECT = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
_METADATA = frozenset(
    {
        *("name", "generateName", "namespace", "labels", "creationTimestamp", "generation", "resourceVersion", "uid"),
        *("managedFields", "selfLink"),
    }
)
_HISTORY = "runs are kept for `retention_days` of the deployment"
_KNOWN_SPEC = {"successfulJobsHistoryLimit": _HISTORY, "failedJobsHistoryLimit": _HISTORY}
_KNOWN_JOB = {
    "ttlSecondsAfterFinished": _HISTORY,
    "parallelism": "a run is one task: use a topology, or several tasks",
    "completions": "a run is one task: use a topology, or several tasks",
    "completionMode": "a run is one task: use a topology, or several tasks",
    "podFailurePolicy": "`Unretriable` and `no_retry_on` of the handler decide which errors are retried",
}
_CONTAINER = frozenset({"name", "image", "command", "args", "env"})
_KNOWN_CONTAINER = {
    "resources": "set the memory and timeout of the handlers' function",
    "envFrom": "set the environment of the handlers; handlers read secrets by name",
    "volumeMounts": "there are no volumes: use S3 or EFS",
}
_KNOWN_POD = {
    "restartPolicy": "a failed attempt is retried by `retry`",
    "serviceAccountName": "the handlers have an IAM role",
    "volumes": "there are no volumes: use S3 or EFS",
}


def import_kubernetes(draft: Draft, sources: Sequence[Source]) -> None:
    """Import the CronJobs of all files; other objects are reported."""
    for source, documents in readable_documents(draft, sources):
        objects = [each for document in documents for each in _objects(document)]
        for each in objects:
            _import_object(draft, source, each)
        if not objects:
            draft.unreadable(source, "has no Kubernetes object")


def _objects(document: object) -> Iterator[Fields]:
    """The objects of a document, including the items of a `List` object."""
    for each in document if isinstance(document, list) else [document]:
        if isinstance(each, Fields):
            items = each.get("items")
            yield from _objects(items) if isinstance(items, list) else (each,)


def _import_object(draft: Draft, source: Source, given: Fields) -> None:
    metadata = _mapping(given.get("metadata"))
    name = metadata.get("name") or metadata.get("generateName") or ""
    item = draft.item(source, given.line or line_of(source, str(name)), str(name))
    if given.get("kind") != "CronJob":
        item.omit(f"is a {shown(given.get('kind') or 'mapping without kind')}, not a CronJob", "kind")
        return
    spec = given.get("spec")
    if not isinstance(spec, Fields) or not isinstance(spec.get("schedule"), str) or not name:
        item.omit("has no metadata.name, or no spec.schedule", "spec")
        return
    if spec.get("suspend") is True and item.omit_suspended("spec.suspend"):
        return
    if namespace := metadata.get("namespace"):
        item.differs("metadata.namespace", f"names are not divided by namespaces: {shown(namespace)} is not kept")
    item.unread(given, _OBJECT, "", {})
    _timing(item, spec)
    _policies(item, spec)
    item.unread(spec, _SPEC, "spec.", _KNOWN_SPEC)
    template = _mapping(spec.get("jobTemplate"))
    item.unread(template, frozenset({"spec"}), "spec.jobTemplate.", {})
    item.unread(metadata, _METADATA, "metadata.", {})
    job = _mapping(template.get("spec"))
    item.fields["task"] = _task(item, job, metadata)
    item.draft.add(item)


def _timing(item: Item, spec: Mapping[str, Any]) -> None:
    text = spec["schedule"].strip()
    zone = spec.get("timeZone")
    if zoned := _ZONED.fullmatch(text):
        zone, text = zoned[1], zoned[2]
    if every := _EVERY.fullmatch(text):
        item.fields["rate"] = every[1]
        return
    item.fields |= {"cron": text, "dialect": "kubernetes"}
    item.zone(zone, "spec.timeZone", "Kubernetes uses the zone of the kube-controller-manager")


def _policies(item: Item, spec: Mapping[str, Any]) -> None:
    policy = spec.get("concurrencyPolicy") or "Allow"
    if policy in _OVERLAPS:
        item.fields["overlap"] = _OVERLAPS[policy]
    else:
        item.lost("spec.concurrencyPolicy", f"{shown(policy)} is not Allow, Forbid or Replace")
    seconds = spec.get("startingDeadlineSeconds")
    if isinstance(seconds, int):
        if seconds > LONGEST_PERIOD:
            item.differs("spec.startingDeadlineSeconds", f"{seconds} s: at most {LONGEST_PERIOD} s")
        item.fields["catch_up_seconds"] = min(max(seconds, 0), LONGEST_PERIOD)
    else:
        item.differs(
            "spec.startingDeadlineSeconds",
            "is not given: missed runs are caught up for an hour, in Kubernetes without a limit",
        )


def _task(item: Item, job: Fields, metadata: Fields) -> dict[str, Any]:
    template = _mapping(job.get("template"))
    pod = _mapping(template.get("spec"))
    containers = [each for each in pod.get("containers") or [] if isinstance(each, Fields)]
    task: dict[str, Any] = {"type": item.placeholder("its containers do not run in duetime")}
    limit = job.get("backoffLimit", _BACKOFF_LIMIT)
    if (attempts := item.attempts(limit, "spec.jobTemplate.spec.backoffLimit")) is not None:
        waits = {"initial_seconds": _FIRST_WAIT, "multiplier": 2, "max_seconds": _LONGEST_WAIT}
        task["retry"] = {"max_attempts": attempts, **(waits if attempts > 1 else {})}
    seconds = job.get("activeDeadlineSeconds")
    if isinstance(seconds, int) and seconds > 0:
        item.differs("spec.jobTemplate.spec.activeDeadlineSeconds", "limits each attempt, not all of them together")
        task |= item.timeout(seconds, "spec.jobTemplate.spec.activeDeadlineSeconds")
    path = "spec.jobTemplate.spec."
    item.unread(job, frozenset({"backoffLimit", "activeDeadlineSeconds", "template"}), path, _KNOWN_JOB)
    item.unread(template, frozenset({"spec"}), f"{path}template.", {})
    path = f"{path}template.spec."
    item.unread(pod, frozenset({"containers"}), path, _KNOWN_POD)
    payload = item.payload({"containers": [_container(item, each, path) for each in containers]}, path)
    if payload is not None and containers:
        task["payload"] = payload["containers"][0] if len(containers) == 1 else payload
    labels = {key.removeprefix(_HELPERS): value for key, value in _mapping(metadata.get("labels")).items()}
    return {**task, "tags": tags} if (tags := item.tags(labels, "metadata.labels")) else task


def _container(item: Item, container: Fields, path: str) -> dict[str, Any]:
    """Convert a container to a payload (image, command, arguments, environment); report variables with `valueFrom`."""
    found = {key: container[key] for key in ("image", "command", "args") if key in container}
    env: dict[str, object] = {}
    for each in container.get("env") or []:
        if not isinstance(each, Fields) or not isinstance(each.get("name"), str):
            continue
        if "valueFrom" in each:
            item.lost(f"{path}containers.env.{each['name']}", "its value is elsewhere, such as in a Secret", each.line)
        else:
            env[each["name"]] = each.get("value", "")
    item.unread(container, _CONTAINER, f"{path}containers.", _KNOWN_CONTAINER)
    return {**found, "env": env} if env else found


def _mapping(value: object) -> Fields:
    return value if isinstance(value, Fields) else Fields()
