"""Lists all subjects on which pairs of operations are run."""

from tests.pairs import definition_subjects, dependency_subjects, gate_subjects, job_subjects, subjects

SUBJECTS = (
    *subjects.SUBJECTS,
    *gate_subjects.SUBJECTS,
    *dependency_subjects.SUBJECTS,
    *definition_subjects.SUBJECTS,
    *job_subjects.SUBJECTS,
)
