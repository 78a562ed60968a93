from datetime import datetime, timedelta

from airflow.decorators import dag, task
from airflow.timetables.trigger import CronTriggerTimetable


@dag(schedule=timedelta(hours=6), start_date=datetime(2026, 1, 1), catchup=True)
def etl():
    @task(retries=2)
    def extract():
        return {"a": 1}

    @task
    def transform(data, factor):
        return data

    @task.bash
    def load(data):
        return "echo done"

    data = extract()
    load(transform(data, factor=2))


@dag(schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False)
def per_customer():
    @task
    def bill(customer): ...

    for customer in ["a", "b"]:
        bill(customer)


@dag(schedule=CronTriggerTimetable("0 9 13 * 5", timezone="Asia/Tokyo"), catchup=False)
def one():
    @task
    def only(): ...

    only()


@dag(schedule=[Dataset("s3://bucket/orders")], catchup=False)
def after_orders(): ...


@dag(schedule=None)
def by_hand(): ...


@dag(schedule="@once")
def once(): ...


etl()
