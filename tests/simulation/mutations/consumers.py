"""Defects in readers of the table's stream: counts, events, live updates, and the archive."""

from __future__ import annotations

from tests.simulation.mutations.mutant import Mutant

MUTANTS = (
    Mutant(
        "a task is archived without its contents if the store fails",
        "services/archiver.py",
        "        except ContentExpired:\n            return content",
        "        except Exception:\n            return content",
    ),
    Mutant(
        "an object that the archive refuses counts as written",
        "adapters/archive_bucket.py",
        "            if days is None:\n                self._s3.put_object(Bucket=self._bucket, Key=key, Body=body)\n",
        "            if days is None:\n                try:\n"
        "                    self._s3.put_object(Bucket=self._bucket, Key=key, Body=body)\n"
        "                except Exception:\n                    return\n",
        test="tests/scenarios/test_archive.py -k test_a_batch_is_delivered_again_while_the_bucket_fails",
    ),
    Mutant(
        "each batch of a day replaces the previous batch in the archive",
        "domain/archive_objects.py",
        'return f"{TASKS_PREFIX}day={self.day}/{self.tasks[0].id}-{digest}{kept}.jsonl.gz"',
        'return f"{TASKS_PREFIX}day={self.day}/{digest[:0]}{kept}.jsonl.gz"',
    ),
    Mutant(
        "a task that its user has deleted is archived",
        "domain/archive_objects.py",
        "if days and not each.task.erased:",
        "if days:",
    ),
    Mutant(
        "a batch is archived only up to the first object that cannot be written",
        "services/archiver.py",
        "        for each in objects_of(batch.tasks, self._policy):\n            self._write(each)",
        "        for each in objects_of(batch.tasks, self._policy):\n            try:\n"
        "                self._write(each)\n            except Exception:\n                break",
    ),
    Mutant(
        "the archive contains only the first attempt of a record",
        "contract/archive.py",
        "**attempts(task, older),",
        "**{**attempts(task, older), 'attempts': attempts(task, older)['attempts'][:1]},",
    ),
    Mutant(
        "changes that could not be counted are treated as counted",
        "services/broadcaster.py",
        "            raise BatchNotCounted(failed)",
        "            return",
    ),
    Mutant(
        "changes that are delivered again are counted again",
        "services/summary.py",
        "while missing := counted.missing(steps):",
        "while missing := (steps if not counted.missing(steps) else counted.missing(steps)):",
        also=(("            else:\n                return\n", "                return\n"),),
    ),
    Mutant(
        "an event about the end of a task has a wrong state",
        "domain/change_events.py",
        "state=task.state.value,",
        'state="failed",',
    ),
    Mutant(
        "the first of several writes in a batch is pushed, not the last",
        "domain/live_updates.py",
        "max(known, change, key=lambda each: each.version)",
        "min(known, change, key=lambda each: each.version)",
    ),
)
