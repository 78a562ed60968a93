"""The Celery application, before the migration."""

import os
from datetime import timedelta

from celery import Celery
from celery.schedules import crontab

app = Celery(
    "lab",
    broker=os.environ["BROKER_URL"],
    backend=os.environ["RESULT_URL"],
    include=["lab.tasks"],
)
app.conf.timezone = "Europe/Berlin"
app.conf.task_acks_late = True
app.conf.worker_prefetch_multiplier = 1
app.conf.result_expires = timedelta(days=3)
app.conf.task_routes = {"lab.tasks.resize": {"queue": "images"}}
app.conf.beat_schedule = {
    "nightly-report": {
        "task": "lab.tasks.nightly_report",
        "schedule": crontab(hour=1, minute=30),
        "args": ("sales",),
        "options": {"expires": 3600},
    },
    "sync-partners": {"task": "lab.tasks.sync_partners", "schedule": timedelta(minutes=10)},
}
