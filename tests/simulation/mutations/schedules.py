"""Defects in schedules."""

from __future__ import annotations

from tests.simulation.mutations.mutant import Mutant

MUTANTS = (
    Mutant(
        "an explanation considers only runs of the current revision",
        "services/schedules/runs.py",
        "        if first > self.clock.now() or any(_has_run(each, first) for each in found):\n",
        "        found = [one for one in found if one.schedule_ref and one.schedule_ref.revision == stored.revision]\n"
        "        if True:\n",
    ),
    Mutant(
        "an occurrence checks neither the pause nor the revision of its schedule",
        "domain/schedules/overlap.py",
        "    if stored.state is ScheduleState.PAUSED:\n        return Skipped(f",
        "    return None\n    if stored.state is ScheduleState.PAUSED:\n        return Skipped(f",
    ),
    Mutant(
        "the ids of occurrences depend on how often the schedule was expanded",
        "domain/schedules/schedule_record.py",
        "return derived(self.uid.text, self.revision_of(occurrence.nominal), occurrence.key)",
        "return derived(self.uid.text, self.generation, occurrence.key)",
    ),
    Mutant(
        "one in four expansions of a schedule sets no next timer",
        "services/schedules/expansion_planner.py",
        "if at is not None:\n            at = max(unread",
        "if at is not None and self.runtime.random_source.below(4):\n            at = max(unread",
    ),
    Mutant(
        "a schedule advances although not all of its occurrences were placed",
        "services/schedules/expander.py",
        "        current.failed = True\n        return None\n",
        "        return None\n",
    ),
    Mutant(
        "occurrences that were missed while no function ran are not counted as skipped",
        "domain/schedules/expansion.py",
        "runs_skipped=stored.runs_skipped + found.skipped",
        "runs_skipped=stored.runs_skipped",
    ),
    Mutant(
        "occurrences overlap although their policy forbids this",
        "domain/schedules/overlap.py",
        "return StartDecision(Skipped(reason, SkipCode.OVERLAP), activity)",
        "return StartDecision(None, activity)",
    ),
    Mutant(
        "an occurrence that must wait begins while another occurrence is running",
        "domain/schedules/overlap.py",
        "    if ahead is None:\n",
        "    if ahead is None or waiting_limit(stored):\n",
    ),
    Mutant(
        "the end of a permanent schedule's run does not begin another run",
        "services/schedules/overlap.py",
        "        if stored.is_permanent and schedule_ref.is_by_timing:\n            self._go_on(task)",
        "",
    ),
    Mutant(
        "a permanent schedule whose chain has broken is not checked",
        "services/schedules/expansion_planner.py",
        "current.next_at = now + PERMANENT_CHECK_INTERVAL",
        "current.next_at = None",
    ),
    Mutant(
        "the number of begun runs is not counted",
        "domain/schedules/run_history.py",
        "begun=self.begun + (cause in {Cause.SCHEDULE, Cause.CATCH_UP}),",
        "begun=self.begun,",
    ),
    Mutant(
        "a schedule ends although skipped occurrences left some of its runs unused",
        "domain/schedules/schedule_record.py",
        "return self.remaining_runs == 0 and self.owed is None",
        "return False",
    ),
    Mutant(
        "an occurrence of a deleted schedule runs",
        "services/schedules/overlap.py",
        'return Skipped(f"the schedule {schedule_ref.schedule!r} was deleted", SkipCode.DELETED)',
        "return None",
    ),
    Mutant(
        "a backfill starts again at each check",
        "domain/schedules/expansion.py",
        "steps(schedule, run.backfill, run.occurrences, run.cursor, has_run)",
        "steps(schedule, run.backfill, run.occurrences, None, has_run)",
    ),
    Mutant(
        "a failure does not pause a schedule with `pause_on_failure`",
        "services/schedules/overlap.py",
        "if pauses_schedule(stored, task):",
        "if False:",
    ),
    Mutant(
        "a new schedule has no timer until it is stored",
        "services/schedules/schedule_writer.py",
        "        self.writer.write_timer(made)\n        if made",
        "        if made",
    ),
    Mutant(
        "a manual run is not sent",
        "services/schedules/manual_runs_and_backfills.py",
        "        self.enqueuer.send_due([task])\n        if not is_new:",
        "        if not is_new:",
    ),
    Mutant(
        "occurrences run although a calendar excludes them",
        "domain/schedules/occurrences.py",
        "covering(schedule.calendars,",
        "covering((),",
    ),
    Mutant(
        "a resumed schedule has no timer",
        "services/schedules/manage.py",
        "self.writer.expand(self.writer.write(stored, version, going_on, with_timer=True))",
        "self.writer.write(stored, version, going_on)",
    ),
    Mutant(
        "a late write of a schedule replaces another schedule with the same name",
        "adapters/dynamodb/versioned_items.py",
        'conditions = [Condition("#e = :e", {"#e": VERSION}, {":e": attribute_values.number(version)})]',
        'conditions = [Condition("attribute_exists(#e)", {"#e": VERSION}, {})]',
        also=(("if version and identity is not None:", "if False:"),),
    ),
    Mutant(
        "a calendar changes the ids of occurrences",
        "domain/schedules/schedule_record.py",
        "home = unmoved_due_at(self.schedule(), occurrence)",
        "home = occurrence.due_at",
    ),
    Mutant(
        "the ids of a backfill depend on its pace",
        "domain/schedules/schedule_record.py",
        "str(occurrence.nominal), purpose).task_id(occurrence.home,",
        "occurrence.key, purpose).task_id(occurrence.due_at,",
    ),
    Mutant(
        "after a change to the timing, occurrences of the old timing still run",
        "domain/schedules/schedule_record.py",
        "return placed.revision == self.revision or self.means(placed.nominal)",
        "return True",
    ),
)
