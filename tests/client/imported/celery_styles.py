"""Ways to define Celery settings: Flask's mapping, classes, updates, conditions, and loops."""

from celery import Celery
from celery.schedules import crontab, schedule
from flask import Flask

EVERY_MINUTE = 60.0
COMMON = {"task": "jobs.common", "schedule": EVERY_MINUTE}


def create_app() -> Flask:
    app = Flask(__name__)
    app.config.from_mapping(
        CELERY=dict(
            broker_url="redis://:hunter2@localhost",
            task_ignore_result=True,
            beat_schedule={"flask": {"task": "jobs.flask", "schedule": crontab(minute="*/5")}},
        ),
    )
    return app


class Config:
    beat_schedule = {"class": {"task": "jobs.a_class", "schedule": schedule(run_every=90)}}


CELERY_BEAT_SCHEDULE: dict = {"annotated": {**COMMON, "kwargs": {"a": {1, 2}}}}
if DEBUG:
    CELERY_BEAT_SCHEDULE["debug"] = {"task": "jobs.debug", "schedule": 2 * EVERY_MINUTE}
    CELERY_BEAT_SCHEDULE.update({"updated": COMMON})

celery = Celery("styles")
celery.conf["task_soft_time_limit"] = 30
celery.conf.update(load_settings())
celery.conf.beat_schedule = {"again": COMMON, "flask": COMMON}
celery.conf.beat_schedule = build_schedule()
for name in NAMES:
    celery.conf.beat_schedule[name] = {"task": "jobs.loop", "schedule": 60}


@periodic_task(run_every=crontab(minute=0))
def old():
    """A task of Celery 4."""
