"""What the routes of the REST API ask for, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime import composition
from duetime.composition.bulk import BulkServices
from duetime.composition.core import CoreServices
from duetime.composition.endpoint_queries import EndpointQueryServices
from duetime.composition.filter_actions import FilterActionServices
from duetime.composition.locks import LockServices
from duetime.composition.pull import PullServices
from duetime.composition.root import Part
from duetime.composition.schedule_requests import ScheduleRequestServices
from duetime.composition.summary import SummaryServices
from duetime.composition.switches import SwitchServices
from duetime.composition.tasks import TaskServices
from duetime.composition.topologies import TopologyServices
from duetime.composition.watch_tickets import WatchTicketServices

if TYPE_CHECKING:
    from duetime.ports.tasks import ContentStore
    from duetime.ports.tracebacks import TracebackStore
    from duetime.services.bulk.filter_actions import BulkRequests
    from duetime.services.bulk.manage import BulkOperations
    from duetime.services.live_updates.tickets import WatchTickets
    from duetime.services.locks.admin import LockAdmin
    from duetime.services.pull.lease import LeaseService
    from duetime.services.pull.report import LeaseReports
    from duetime.services.schedules.calendars import CalendarManager
    from duetime.services.schedules.create import ScheduleCreator
    from duetime.services.schedules.manage import ScheduleManager
    from duetime.services.schedules.manual_runs import ManualRuns
    from duetime.services.schedules.preview import SchedulePreview
    from duetime.services.schedules.runs import ScheduleRuns
    from duetime.services.summary.reader import SummaryReader
    from duetime.services.switches.admin import SwitchAdmin
    from duetime.services.tasks.attempt_reports import AttemptReports
    from duetime.services.tasks.control import TaskControl
    from duetime.services.tasks.create import TaskCreator
    from duetime.services.tasks.endpoint_query import TargetQueryService
    from duetime.services.tasks.erase import TaskEraser
    from duetime.services.tasks.read import TaskReader
    from duetime.services.tasks.update import TaskUpdater
    from duetime.services.tasks.wait import OutcomeWaiter
    from duetime.services.topologies.service import TopologyService


def composed() -> ApiServices:
    """What this process composed for the API."""
    return composition.composed(ApiServices)


class ApiServices(Part):
    """The use cases behind the API's routes."""

    @property
    def task_creator(self) -> TaskCreator:
        """Accepts tasks."""
        return self.part(TaskServices).creator

    @property
    def task_reader(self) -> TaskReader:
        """Reads tasks."""
        return self.part(TaskServices).reader

    @property
    def task_updater(self) -> TaskUpdater:
        """Changes and cancels tasks."""
        return self.part(TaskServices).updater

    @property
    def attempt_reports(self) -> AttemptReports:
        """Takes heartbeats and notifications of asynchronous targets."""
        return self.part(TaskServices).attempt_reports

    @property
    def task_control(self) -> TaskControl:
        """Pauses, resumes, runs, retries, stops and reports on tasks."""
        return self.part(TaskServices).control

    @property
    def task_eraser(self) -> TaskEraser:
        """Erases tasks."""
        return self.part(TaskServices).eraser

    @property
    def outcome_waiter(self) -> OutcomeWaiter:
        """Waits for outcomes."""
        return self.part(TaskServices).waiter

    @property
    def contents(self) -> ContentStore:
        """Payloads and results, and attempts that records have no room for."""
        return self.part(CoreServices).stores.contents

    @property
    def tracebacks(self) -> TracebackStore:
        """Tracebacks of failed attempts."""
        return self.part(CoreServices).tracebacks

    @property
    def target_queries(self) -> TargetQueryService:
        """Asks the endpoints of tasks."""
        return self.part(EndpointQueryServices).queries

    @property
    def bulk_requests(self) -> BulkRequests:
        """Does something with the tasks that a filter matches."""
        return self.part(FilterActionServices).requests

    @property
    def bulk_operations(self) -> BulkOperations:
        """Starts, shows and cancels bulk operations."""
        return self.part(BulkServices).operations

    @property
    def lease_service(self) -> LeaseService:
        """Hands out tasks to pull workers."""
        return self.part(PullServices).leases

    @property
    def lease_reports(self) -> LeaseReports:
        """Takes what pull workers report."""
        return self.part(PullServices).reports

    @property
    def lock_admin(self) -> LockAdmin:
        """Shows locks, and frees them by force."""
        return self.part(LockServices).admin

    @property
    def switch_admin(self) -> SwitchAdmin:
        """Sets switches, and shows what is postponed."""
        return self.part(SwitchServices).admin

    @property
    def summary_reader(self) -> SummaryReader:
        """Tells how many tasks there are."""
        return self.part(SummaryServices).reader

    @property
    def manual_runs(self) -> ManualRuns:
        """Runs and backfills schedules."""
        return self.part(ScheduleRequestServices).manual_runs

    @property
    def schedule_creator(self) -> ScheduleCreator:
        """Creates schedules."""
        return self.part(ScheduleRequestServices).creator

    @property
    def schedule_manager(self) -> ScheduleManager:
        """Updates and controls schedules."""
        return self.part(ScheduleRequestServices).manager

    @property
    def schedule_preview(self) -> SchedulePreview:
        """Tells what schedules have done and will do."""
        return self.part(ScheduleRequestServices).preview

    @property
    def schedule_runs(self) -> ScheduleRuns:
        """Lists the runs of schedules."""
        return self.part(ScheduleRequestServices).runs

    @property
    def calendar_manager(self) -> CalendarManager:
        """Keeps calendars."""
        return self.part(ScheduleRequestServices).calendar_manager

    @property
    def topology_service(self) -> TopologyService:
        """Accepts, shows and controls topologies."""
        return self.part(TopologyServices).service

    @property
    def watch_tickets(self) -> WatchTickets:
        """Issues tickets for WebSocket connections."""
        return self.part(WatchTicketServices).tickets
