"""Uses the client that openapi-python-client generates as a user would; the first error ends the program.

Arguments: the API's URL, an owner without tasks, and optionally an owner that the gateway refuses.
"""

import datetime as dt
import sys

from generated import Client
from generated.api.calendars import get_calendar, put_calendar
from generated.api.schedules import create_schedule, get_schedule, preview_schedule
from generated.api.tasks import cancel_tasks_by_filter, create_task, get_task, list_tasks
from generated.models import (
    BulkCancel,
    CalendarPut,
    CalendarPutWeekdaysItem,
    GatewayMessage,
    OpenTaskFilter,
    OpenTaskFilterTags,
    PreviewRequest,
    Problem,
    ScheduleCreate,
    TaskCreate,
    TaskCreateTags,
    TaskTemplateInput,
)

SOON = dt.datetime(2030, 1, 1, 9, tzinfo=dt.UTC)
url, owner, *strangers = sys.argv[1:]
client = Client(base_url=url, headers={"X-Duetime-Owner": owner})


def tags(**values: str) -> TaskCreateTags:
    """Return a task's tags."""
    return TaskCreateTags.from_dict(values)


# Creating with tags, at a time, and with only a type.
tagged = create_task.sync(client=client, body=TaskCreate(type_="echo", tags=tags(team="dba"), due_at=SOON))
assert tagged.tags.to_dict() == {"team": "dba"}, tagged
assert tagged.due_at == SOON, tagged
plain = create_task.sync(client=client, body=TaskCreate(type_="echo"), idempotency_key="one", wait_seconds=20)
again = create_task.sync(client=client, body=TaskCreate(type_="echo"), idempotency_key="one")
assert again.id == plain.id, again

# Waiting for the outcome.
done = get_task.sync(plain.id, client=client)
assert done.state == "succeeded", done

# Listing by ids, and by tags.
page = list_tasks.sync(client=client, ids=[tagged.id, plain.id])
assert {task.id for task in page.tasks} == {tagged.id, plain.id}, page
assert [task.id for task in list_tasks.sync(client=client, tag=["team:dba"]).tasks] == [tagged.id]

# A schedule, its preview, a calendar.
sundays = CalendarPut(timezone="Europe/London", weekdays=[CalendarPutWeekdaysItem.SUN])
calendar = put_calendar.sync("holidays", client=client, body=sundays)
assert calendar.timezone == "Europe/London", calendar
assert get_calendar.sync("holidays", client=client).weekdays == ["sun"]
timing = {"cron": "30 1 * * *", "timezone": "Europe/London", "calendars": ["holidays"]}
preview = preview_schedule.sync(client=client, body=PreviewRequest(**timing, count=3))
assert len(preview.occurrences) >= 3, preview
nightly = ScheduleCreate(name="n", task=TaskTemplateInput(type_="echo"), **timing)
schedule = create_schedule.sync(client=client, body=nightly)
assert schedule.cron == timing["cron"], schedule
assert get_schedule.sync("n", client=client).task.type_ == "echo"

# A cancel with a filter affects only matching tasks.
other = create_task.sync(client=client, body=TaskCreate(type_="echo", tags=tags(team="web"), due_at=SOON))
wanted = OpenTaskFilter(type_="echo", tags=OpenTaskFilterTags.from_dict({"team": "dba"}))
counted = cancel_tasks_by_filter.sync(client=client, body=BulkCancel(filter_=wanted, dry_run=True))
assert counted.matched == 1, counted
cancel_tasks_by_filter.sync(client=client, body=BulkCancel(filter_=wanted))
assert get_task.sync(tagged.id, client=client).state == "cancelled"
assert get_task.sync(other.id, client=client).state == "scheduled"

# Errors from the API and from the gateway.
refused = create_task.sync(client=client, body=TaskCreate(type_="not a type"))
assert isinstance(refused, Problem), refused
assert refused.code == "fields_invalid", refused
assert refused.errors[0].field == "type", refused
unknown = get_task.sync("01M7XZ8CGJ0013P2ZBN3YDT3DX", client=client)
assert unknown.code == "task_not_found", unknown
for name in strangers:
    stranger = Client(base_url=url, headers={"X-Duetime-Owner": name})
    rejected = create_task.sync(client=stranger, body=TaskCreate(type_="echo"))
    assert isinstance(rejected, GatewayMessage), rejected
    assert rejected.message == "Forbidden", rejected
