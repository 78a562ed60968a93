"""A shop's Celery application, with its tasks."""

import os
from datetime import timedelta

from celery import Celery, shared_task
from celery.schedules import crontab, solar

app = Celery("shop", broker=os.environ["BROKER_URL"])
app.config_from_object("django.conf:settings", namespace="CELERY")
HOUR = 60 * 60

app.conf.timezone = "Europe/London"
app.conf.update(
    task_time_limit=1800,
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    result_expires=HOUR * 24,
    task_routes={"shop.tasks.send_report": {"queue": "reports"}},
)

app.conf.beat_schedule = {
    "nightly-report": {
        "task": "shop.tasks.send_report",
        "schedule": crontab(hour=1, minute=30),
        "args": ("sales", 10),
        "options": {"queue": "reports", "expires": 2 * HOUR},
    },
    "sweep": {"task": "shop.tasks.sweep", "schedule": timedelta(minutes=10), "kwargs": {"limit": 500}},
    "poll": {"task": "partners.poll", "schedule": 30.0},
    "friday the 13th": {
        "task": "shop.tasks.sweep",
        "schedule": crontab(minute="0", hour="*/4", day_of_month=13, day_of_week="fri"),
    },
    "sunset": {"task": "shop.tasks.lights", "schedule": solar("sunset", -37.81753, 144.96715)},
    "tenant": {"task": f"tenants.{os.environ['TENANT']}", "schedule": 60},
    "half": {"task": "shop.tasks.sweep", "schedule": 0.5, "relative": True},
}


@shared_task(
    name="shop.tasks.send_report",
    bind=True,
    autoretry_for=(ConnectionError,),
    retry_backoff=True,
    max_retries=4,
    rate_limit="10/m",
    time_limit=900,
    ignore_result=True,
)
def send_report(self, kind, top=5):
    """Send a report."""


@app.task
def lights(): ...


@app.on_after_finalize.connect
def setup(sender, **kwargs):
    sender.add_periodic_task(crontab(minute=5), lights.s(), name="lights every hour")
    sender.add_periodic_task(15.0, send_report.s("stock", top=3), expires=10)
