"""Confirmation tokens: what a dry run counted, for the request that is to act on just that.

A token holds the moment of its dry run, and a check of the deployment, the owner, the action and the filter. It is
stored nowhere, grants nothing and does not expire: every action by a filter is limited to tasks of its caller.
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
    """The token of a dry run that counted what was there at a moment.

    Args:
        body: that of the dry run.
        owner: whose tasks they are.
        deployment: the name of its table: what was counted in one is not what there is in another.
        until: the moment.
    """
    return page_tokens.text_token(str(until), _scope(body, owner, deployment))


def confirmed_until(body: FilterActionBody, owner: str, deployment: str, now: Millis) -> Millis | None:
    """The moment until which tasks are meant; none if there is no such limit.

    A dry run begins with the present moment. The further pieces of one have to carry its token: without it, they
    would count until different moments.

    Raises:
        FieldsInvalid: its token is of another deployment, owner, filter or action.
    """
    if body.confirmation_token is None:
        return now if body.dry_run and body.next_token is None else None
    try:
        return int(page_tokens.text_after(body.confirmation_token, _scope(body, owner, deployment)))
    except (ParametersInvalid, ValueError):
        # Its check is no secret: whoever makes one up may put anything into it.
        reason = "does not belong to this deployment, filter and action: repeat the dry run"
        raise FieldsInvalid([Fault(CONFIRMATION, reason, FaultCode.CONFLICT)]) from None


def _scope(body: FilterActionBody, owner: str, deployment: str) -> str:
    """What is confirmed. How fast it is done, and in which order, is not part of it."""
    update = body.update.model_dump(mode="json", exclude_unset=True) if isinstance(body, BulkUpdate) else None
    wanted = body.filter.model_dump(mode="json")
    return json.dumps([CONFIRMATION, deployment, owner, kind_of(body), is_forced(body), wanted, update], sort_keys=True)
