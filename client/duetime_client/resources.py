"""The operations of the API by resource: `client.tasks.create(...)`, `client.schedules.pause(...)`.

Each is the client's method of the longer name: signatures and documentation are written down there, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime_client.client import Client
    from duetime_client.task import Task


class TaskResource:
    """`client.tasks`."""

    def __init__(self, client: Client) -> None:
        self.create = client.create_task
        self.create_batch = client.create_task_batch
        self.get = client.get_task
        self.list = client.list_tasks
        self.update = client.update_task
        self.cancel = client.cancel_task
        self.delete = client.delete_task
        self.pause = client.pause_task
        self.resume = client.resume_task
        self.run = client.run_task
        self.retry = client.retry_task
        self.rollback = client.rollback_task
        self.list_attempts = client.list_task_attempts
        self.list_events = client.list_task_events
        self.explain = client.explain_task
        self.query = client.query_task
        self.notify_success = client.notify_success
        self.notify_failure = client.notify_failure
        self.report_heartbeat = client.report_heartbeat
        self.report_progress = client.report_progress
        self.follow = client.follow_task
        self.cancel_by_filter = client.cancel_tasks_by_filter
        self.update_by_filter = client.update_tasks_by_filter
        self.retry_by_filter = client.retry_tasks_by_filter

    def wait(self, task_id: str) -> Task:
        """The task once its outcome is known; it is polled until then."""
        *_, task = self.follow(task_id)
        return task


class ScheduleResource:
    """`client.schedules`."""

    def __init__(self, client: Client) -> None:
        self.create = client.create_schedule
        self.get = client.get_schedule
        self.list = client.list_schedules
        self.update = client.update_schedule
        self.delete = client.delete_schedule
        self.pause = client.pause_schedule
        self.resume = client.resume_schedule
        self.run = client.run_schedule
        self.preview = client.preview_schedule
        self.explain = client.explain_schedule
        self.list_runs = client.list_schedule_runs
        self.list_events = client.list_schedule_events
        self.list_occurrences = client.list_occurrences
        self.create_backfill = client.create_backfill
        self.get_backfill = client.get_backfill
        self.list_backfills = client.list_backfills
        self.cancel_backfill = client.cancel_backfill


class TopologyResource:
    """`client.topologies`."""

    def __init__(self, client: Client) -> None:
        self.create = client.create_topology
        self.get = client.get_topology
        self.list = client.list_topologies
        self.follow = client.follow_topology
        self.retry = client.retry_topology
        self.cancel = client.cancel_topology
        self.delete = client.delete_topology
        self.pause = client.pause_topology
        self.resume = client.resume_topology


class CalendarResource:
    """`client.calendars`."""

    def __init__(self, client: Client) -> None:
        self.get = client.get_calendar
        self.list = client.list_calendars
        self.put = client.put_calendar
        self.put_icalendar = client.put_icalendar
        self.delete = client.delete_calendar


class LockResource:
    """`client.locks`."""

    def __init__(self, client: Client) -> None:
        self.get = client.get_lock
        self.list = client.list_locks
        self.release = client.release_lock


class LeaseResource:
    """`client.leases`."""

    def __init__(self, client: Client) -> None:
        self.acquire = client.acquire_leases
        self.renew = client.renew_lease
        self.complete = client.complete_lease
        self.fail = client.fail_lease
        self.release = client.release_lease
        self.acknowledge_pause = client.acknowledge_lease_pause
        self.acknowledge_cancel = client.acknowledge_lease_cancel


class SwitchResource:
    """`client.switches`."""

    def __init__(self, client: Client) -> None:
        self.get = client.get_switch
        self.list = client.list_switches
        self.put = client.put_switch
        self.delete = client.delete_switch


class BulkOperationResource:
    """`client.bulk_operations`."""

    def __init__(self, client: Client) -> None:
        self.get = client.get_bulk_operation
        self.list = client.list_bulk_operations
        self.cancel = client.cancel_bulk_operation
        self.follow = client.follow_bulk_operation


class DeadLetterResource:
    """`client.dead_letters`."""

    def __init__(self, client: Client) -> None:
        self.list = client.list_dead_letters
        self.retry = client.retry_tasks_by_filter
