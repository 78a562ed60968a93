"""Composes the management and the check of API keys; the authorizer needs nothing else."""

from __future__ import annotations

from functools import cached_property

from duetime.adapters.dynamodb.api_keys import DynamoApiKeyStore
from duetime.composition import Part
from duetime.services.api_keys import ApiKeyAdmin, ApiKeyCheck


class ApiKeyServices(Part):
    """API keys."""

    @cached_property
    def admin(self) -> ApiKeyAdmin:
        """Creates, lists and revokes keys."""
        return ApiKeyAdmin(self._store, self.runtime, self.settings.accepts_api_keys)

    @cached_property
    def check(self) -> ApiKeyCheck:
        """Checks the keys of requests."""
        return ApiKeyCheck(self._store, self.runtime)

    @cached_property
    def _store(self) -> DynamoApiKeyStore:
        return DynamoApiKeyStore(self.platform.clients.dynamodb(), self.settings.table)
