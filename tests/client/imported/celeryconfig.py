CELERY_TIMEZONE = "Asia/Tokyo"
CELERY_ENABLE_UTC = False
CELERY_TASK_SERIALIZER = "pickle"
BROKER_URL = "redis://localhost"
EVERY = {"minute": "*/15"}

CELERYBEAT_SCHEDULE = {
    "runs-every-30-seconds": {"task": "tasks.add", "schedule": __import__("datetime").timedelta(seconds=30), "args": (16, 16)},
    "quarters": {"task": "tasks.add", "schedule": crontab(**EVERY)},
    "weekdays": {"task": "tasks.add", "schedule": crontab(minute=0, hour=[8, 12], day_of_week="mon-fri")},
}
