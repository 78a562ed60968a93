"""Defects in jobs that AWS runs."""

from __future__ import annotations

from tests.simulation.mutations.mutant import Mutant

MUTANTS = (
    Mutant(
        "a cancel request ends an attempt whose lost worker may have started a job",
        "domain/tasks/attempt_run.py",
        "if start_is_open(task) and not",
        "if False and not",
        pairs="^job-lost cancel-by-force worker$",
    ),
    Mutant(
        "a task whose job start got no response is cancelled as if no job had started",
        "adapters/targets/aws_target.py",
        "            # The job may have begun nevertheless, so it is searched for.\n            return Deferred()",
        '            return NotSent("no response")',
        pairs="^job-starting worker cancel-by-force$",
    ),
    Mutant(
        "the search for a job ends before its service must have listed the job",
        "domain/operating_parameters.py",
        "JOB_SEARCH = 2 * MINUTE",
        "JOB_SEARCH = 5 * SECOND",
        test="tests/scenarios/test_job_starts.py -k test_a_cancelled_task_without_a_found_job_ends_with_job_unknown",
    ),
    Mutant(
        "a job that may be running is started again if its service does not list it at once",
        "adapters/targets/aws_jobs.py",
        "if known or start_is_open(task):",
        "if known:",
        test="tests/scenarios/test_job_starts.py -k test_the_search_for_a_job_lasts_until_the_list_is_current",
    ),
    Mutant(
        "the job of an earlier attempt is mistaken for the current attempt's job",
        "domain/tasks/attempt_run.py",
        'return (task.job or "") if task.deferred_fence is not None else ""',
        'return task.job or ""',
        pairs="^job-lost-again cancel-by-force worker$",
    ),
    Mutant(
        "no further checks of a job are scheduled",
        "services/job_watcher.py",
        "        for at in reminders(task, task.lease_expires_at or now, now, self.enqueuer.look_ahead):\n"
        "            self.enqueuer.remind(task, at)\n",
        "",
        pairs="^job-checked get trigger$",
    ),
    Mutant(
        "an event that arrives before the job's start has been recorded is discarded",
        "services/job_watcher.py",
        'return RedeliverMessage(now + _EVENT_RETURNS, "its start is not recorded yet")',
        'return DeleteMessage("its start is not recorded yet")',
        pairs="^job-starting worker job-succeeds-and-is-heard$",
    ),
    Mutant(
        "a job that is not listed yet is treated as lost",
        "services/job_watcher.py",
        "if ending is None or _is_too_young(task, ending, now):",
        "if ending is None:",
        pairs="^job-undescribed cancel-by-force worker$",
    ),
    Mutant(
        "the job of a cancelled task continues until its deadline",
        "services/job_watcher.py",
        "if found.requested_action is RequestedAction.CANCEL or now >= job_deadline(found):",
        "if now >= job_deadline(found):",
        pairs="^job-running cancel-by-force trigger$",
    ),
    Mutant(
        "the end of a job is written without checking its attempt's fence",
        "services/job_watcher.py",
        "self.attempt_reports.end(task, task.fence, ending)",
        "latest = self.tasks.read(task.id) or task\n            self.attempt_reports.end(latest, latest.fence, ending)",
        pairs="^job-failed worker job-event-and-next-attempt$",
    ),
)
