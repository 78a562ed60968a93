"""Prints the OpenAPI document without data of a specific deployment: `python -m docs.openapi`."""

from __future__ import annotations

import json
import sys

from duetime.contract.openapi.document import document

sys.stdout.write(f"{json.dumps(document(), indent=1, ensure_ascii=False)}\n")
