"""Mistakes in jobs that AWS runs."""

from __future__ import annotations

from tests.simulation.mutations.mutant import Mutant

MUTANTS = (
    Mutant(
        "a cancel ends an attempt whose lost worker may have started a job",
        "domain/tasks/job_starts.py",
        "if start_is_open(task) and not",
        "if False and not",
    ),
    Mutant(
        "the task of a job whose start got no response may be cancelled as if nothing had begun",
        "adapters/targets/aws_target.py",
        "            # The job may have begun anyway: it is looked for.\n            return Deferred()",
        '            return NotSent("no response")',
    ),
    Mutant(
        "a job is started again before its service must have listed the first one",
        "domain/operating_parameters.py",
        "JOB_SEARCH = 2 * MINUTE",
        "JOB_SEARCH = 5 * SECOND",
    ),
    Mutant(
        "a job that may run is started again if its service does not list it at once",
        "adapters/targets/aws_jobs.py",
        "if known or start_is_open(task):",
        "if known:",
    ),
)
