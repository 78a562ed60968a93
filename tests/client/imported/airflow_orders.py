from datetime import datetime, timedelta

import pendulum
from airflow import DAG
from airflow.operators.bash import BashOperator
from airflow.operators.python import PythonOperator
from airflow.sensors.filesystem import FileSensor

default_args = {
    "owner": "data",
    "retries": 3,
    "retry_delay": timedelta(minutes=2),
    "email_on_failure": True,
    "depends_on_past": False,
}


def fetch_orders(**context):
    """Fetch the orders."""


with DAG(
    "orders_nightly",
    default_args=default_args,
    schedule="30 1 * * *",
    start_date=pendulum.datetime(2026, 1, 1, tz="Europe/London"),
    catchup=False,
    max_active_runs=1,
    tags=["orders", "finance"],
    dagrun_timeout=timedelta(hours=2),
) as dag:
    wait = FileSensor(task_id="wait", filepath="/data/{{ ds }}.csv", poke_interval=60)
    fetch = PythonOperator(
        task_id="fetch", python_callable=fetch_orders, op_kwargs={"region": "eu"}, execution_timeout=timedelta(minutes=5)
    )
    left = BashOperator(task_id="left", bash_command="summarize --by day", retries=0)
    right = BashOperator(task_id="right", bash_command="export", pool="exports", retry_exponential_backoff=True)
    report = PythonOperator(task_id="report", python_callable=print, trigger_rule="all_done")
    wait >> fetch >> [left, right] >> report
    report << wait
