"""The ten tasks of the photo lab, before the migration."""

from datetime import datetime, timedelta, timezone

from celery import Task, chain, chord, group
from celery.exceptions import Ignore

from lab.app import app
from lab.services import SERVICES, Busy, Declined

PARTNERS = ("north", "south", "west")


class PartnerTask(app.Task):
    """A base class that keeps a session in each worker process, and reports failures."""

    _session = None

    @property
    def session(self):
        if self._session is None:
            self._session = object()
        return self._session

    def on_failure(self, exc, task_id, args, kwargs, einfo):
        SERVICES.alerts.append(f"{self.name}{args}: {exc}")


@app.task
def place_order(order, email, amount, photos):
    """Start the tasks that charge and confirm a new order, send a reminder in three days, and make the prints."""
    chain(charge.s(order, amount), send_confirmation.s(order, email)).delay()
    send_reminder.apply_async((order, email), eta=datetime.now(timezone.utc) + timedelta(days=3))
    chord(group(resize.s(photo) for photo in photos), contact_sheet.s(order=order)).delay()


@app.task(bind=True, max_retries=5, throws=(Declined,))
def charge(self, order, amount):
    try:
        return SERVICES.charge(order, amount)
    except Busy as error:
        raise self.retry(exc=error, countdown=60)


@app.task(
    autoretry_for=(ConnectionError,), retry_backoff=True, retry_backoff_max=300, max_retries=4, rate_limit="10/s"
)
def send_confirmation(receipt, order, email):
    SERVICES.mail(email, f"order {order}: {receipt}")


@app.task(autoretry_for=(ConnectionError,), retry_backoff=True, rate_limit="10/s")
def send_reminder(order, email):
    if order in SERVICES.paid:
        raise Ignore()
    SERVICES.mail(email, f"please pay order {order}")


@app.task(time_limit=300, soft_time_limit=280, priority=3)
def resize(photo, width=1200):
    return f"{photo}@{width}"


@app.task
def contact_sheet(files, order):
    SERVICES.sheets[order] = files
    publish.delay(order, files)
    return len(files)


@app.task(ignore_result=True, default_retry_delay=30, autoretry_for=(Exception,), max_retries=2)
def publish(order, files):
    SERVICES.upload(order, files)
    SERVICES.mail("archive@example.org", f"order {order}: {len(files)} files")


@app.task
def sync_partners():
    group(sync_partner.s(partner) for partner in PARTNERS).delay()


@app.task(base=PartnerTask, bind=True, autoretry_for=(ConnectionError,), retry_kwargs={"max_retries": 2, "countdown": 5})
def sync_partner(self, partner):
    return SERVICES.fetch_stock(self.session, partner)


@app.task(time_limit=900)
def nightly_report(kind, top=10):
    SERVICES.mail("boss@example.org", f"{kind}: {len(SERVICES.charges)} orders, top {top}")
