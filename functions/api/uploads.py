"""Handler for payload uploads."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.tasks import TaskServices
from duetime.contract.tasks.encoding import json_text
from duetime.contract.uploads import CREATE, new_upload, upload_response

from .requests import admit_upload
from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(CREATE)
def create_upload(request: Request) -> Response:
    """Begin the upload of a payload."""
    upload_id, content = new_upload(request.document())
    admit_upload(request, content.size)
    upload, signed = composed(TaskServices).uploads.begin(request.owner, upload_id, content)
    return answer(json_text(upload_response(upload, signed)), HTTPStatus.CREATED)
