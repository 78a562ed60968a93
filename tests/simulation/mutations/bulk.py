"""Defects in bulk operations: their holders, their epochs, and their ends."""

from __future__ import annotations

from tests.simulation.mutations.mutant import Mutant

MUTANTS = (
    Mutant(
        "a holder continues a bulk operation that another holder has taken over",
        "services/bulk/executor.py",
        "not stored.is_running or stored.epoch != operation.epoch",
        "not stored.is_running",
    ),
    Mutant(
        "a bulk operation is taken over while its holder's lease lasts",
        "domain/bulk.py",
        "return self.is_running and self.leased_until + MAX_CLOCK_DIFFERENCE <= now",
        "return self.is_running and now > 0",
    ),
    Mutant(
        "the epoch of a bulk operation does not grow",
        "domain/bulk.py",
        "epoch=self.epoch + 1, leased_until=now + BULK_LEASE",
        "epoch=self.epoch, leased_until=now + BULK_LEASE",
    ),
    Mutant(
        "a bulk operation continues after its user has stopped it",
        "services/bulk/executor.py",
        "not stored.is_running or stored.epoch != operation.epoch",
        "stored.epoch != operation.epoch",
        also=(
            (
                "return replace(stored, progress=replace(",
                "return replace(stored, state=operation.state, progress=replace(",
            ),
        ),
        pairs="^bulk-cancelling bulk stop-bulk$",
    ),
    Mutant(
        "a bulk operation starts over with each holder",
        "domain/bulk.py",
        "return replace(self, holder=holder, epoch",
        "return replace(self, progress=BulkProgress(), holder=holder, epoch",
    ),
    Mutant(
        "a bulk operation has no timer",
        "services/bulk/manage.py",
        "        self._set_timer(operation.id)\n        if not self.stores.bulk.save",
        "        if not self.stores.bulk.save",
        pairs="^bulk-cancelling get-bulk trigger$",
    ),
    Mutant(
        "an operation ends while the operation that it replaces may still change tasks",
        "services/bulk/executor.py",
        "if progress.is_complete and now >= operation.not_complete_before:",
        "if progress.is_complete:",
        test="tests/scenarios/test_bulk_operations.py",
    ),
    Mutant(
        "a step of a bulk operation is written without checking the operation's version",
        "adapters/dynamodb/bulk.py",
        "return save_next(self._client, self._table, _item_of(operation), operation.version, nonce)",
        "stored = self.read(operation.id)\n"
        "        version = operation.version if stored is None else stored.version\n"
        "        return save_next(self._client, self._table, _item_of(operation), version, nonce)",
    ),
)
