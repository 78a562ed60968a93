"""Ways to write DAGs in one file: assigned DAGs, groups, branches, loops, and functions that create tasks."""

from datetime import datetime, timedelta

from airflow import DAG
from airflow.models.baseoperator import chain, cross_downstream

legacy = DAG(
    dag_id="legacy",
    schedule_interval="0 0 12 * * 5",
    start_date=datetime(2024, 1, 1),
    default_args=dict(retries=2, retry_delay=timedelta(seconds=30)),
    max_active_runs=3,
)
t1 = BashOperator(task_id="t1", bash_command="a", dag=legacy)
t2 = BashOperator(task_id="t2", bash_command="b", dag=legacy)
t3 = BashOperator(task_id="t3", bash_command="c", dag=legacy)
t1.set_downstream(t2)
chain(t2, t3)

other = DAG("other", schedule="@continuous", max_active_runs=1, catchup=False)
o1 = BashOperator(task_id="o1", bash_command="a", dag=other)


def make(name):
    return BashOperator(task_id=name, bash_command=name)


with DAG("grouped", schedule="@hourly", catchup=False):
    start = EmptyOperator(task_id="start")
    with TaskGroup("load") as group:
        a = BashOperator(task_id="a", bash_command="x")
    start >> group

with DAG("branching", schedule="@weekly", catchup=False):
    choice = BranchPythonOperator(task_id="choice", python_callable=choose)
    left = BashOperator(task_id="left", bash_command="a")
    right = BashOperator(task_id="right", bash_command="b", trigger_rule="none_failed_min_one_success")
    choice >> Label("yes") >> [left, right]

with DAG("crossed", schedule="@quarterly", catchup=False):
    firsts = [BashOperator(task_id="a", bash_command="a"), BashOperator(task_id="b", bash_command="b")]
    seconds = [BashOperator(task_id="c", bash_command="c"), BashOperator(task_id="d", bash_command="d")]
    cross_downstream(firsts, seconds)

with DAG("cycle", schedule="@weekly", catchup=False):
    c1 = BashOperator(task_id="c1", bash_command="a")
    c2 = BashOperator(task_id="c2", bash_command="b")
    c1 >> c2 >> c1

with DAG("comprehension", schedule="@weekly", catchup=False):
    begin = BashOperator(task_id="begin", bash_command="a")
    several = [BashOperator(task_id=f"e{i}", bash_command="b") for i in range(3)]
    begin >> several

with DAG("built", schedule="@weekly", catchup=False):
    make("one")

with DAG("mapped", schedule="@weekly", catchup=False):
    BashOperator.partial(task_id="m").expand(bash_command=["a", "b"])

with DAG(f"dynamic_{1}", schedule="@weekly"):
    pass
