"""Measures APScheduler 4, with a date-triggered schedule for each task; threads of the same process run the tasks.

Usage: python apscheduler_program.py memory|sqlite
"""

import sys
import tempfile
from pathlib import Path

import scheduled_tasks
from apscheduler import Scheduler
from apscheduler.datastores.memory import MemoryDataStore
from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
from apscheduler.triggers.date import DateTrigger
from sqlalchemy import create_engine


def main() -> None:
    """Start the scheduler in the background, and measure its tasks."""
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1] == "memory":
            store = MemoryDataStore()
        else:
            store = SQLAlchemyDataStore(create_engine(f"sqlite:///{Path(folder) / 'schedules.db'}"))
        with Scheduler(store) as scheduler:
            scheduler.start_in_background()

            def create(tasks):
                for number, due in tasks:
                    scheduler.add_schedule(scheduled_tasks.note, DateTrigger(due), args=(number,))

            scheduled_tasks.measure(create)


if __name__ == "__main__":
    main()
