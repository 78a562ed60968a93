"""Confirmation tokens, which limit a request to the tasks that a dry run has counted.

A token contains the time of its dry run, and a check of the deployment, the owner, the action and the filter. It is not
stored, grants nothing and does not expire: every action by filter is limited to tasks of its caller.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.contract.bulk.bodies import CONFIRMATION, BulkUpdate, is_forced, kind_of
from duetime.contract.http import page_tokens
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid, ParametersInvalid

if TYPE_CHECKING:
    from duetime.contract.bulk.bodies import FilterActionBody
    from duetime.domain.times import Millis


def confirmation_token(body: FilterActionBody, owner: str, deployment: str, until: Millis) -> str:
    """The token of a dry run at the given time.

    Args:
        body: of the dry run.
        owner: of the tasks.
        deployment: name of the deployment's table: a token is valid for only one deployment.
        until: time of the dry run.
    """
    return page_tokens.text_token(str(until), _scope(body, owner, deployment))


def confirmed_until(body: FilterActionBody, owner: str, deployment: str, now: Millis) -> Millis | None:
    """The time of the dry run, after which tasks are excluded; `None` for no such limit.

    A dry run starts with the present time. Its further pieces must carry its token: without it, they would count up to
    different times.

    Raises:
        FieldsInvalid: its token belongs to another deployment, owner, filter or action.
    """
    if body.confirmation_token is None:
        return now if body.dry_run and body.next_token is None else None
    try:
        return int(page_tokens.text_after(body.confirmation_token, _scope(body, owner, deployment)))
    except (ParametersInvalid, ValueError):
        # The check is not secret: anyone can compute it for any content.
        reason = "does not belong to this deployment, filter and action: repeat the dry run"
        raise FieldsInvalid([Fault(CONFIRMATION, reason, FaultCode.CONFLICT)]) from None


def _scope(body: FilterActionBody, owner: str, deployment: str) -> str:
    """The confirmed content. Pace and order are not part of it."""
    update = body.update.model_dump(mode="json", exclude_unset=True) if isinstance(body, BulkUpdate) else None
    wanted = body.filter.model_dump(mode="json")
    return json.dumps([CONFIRMATION, deployment, owner, kind_of(body), is_forced(body), wanted, update], sort_keys=True)
