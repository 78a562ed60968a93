from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from infra import ROOT

if TYPE_CHECKING:
    from pathlib import Path

NOWHERE = "http://127.0.0.1:9"
"""An address where nothing listens, so that any use of the network fails."""


def synth(environment: str, output: Path) -> subprocess.CompletedProcess[str]:
    """Run the CDK's own command in the checkout, as a user does, without a network and without Docker."""
    offline = {"UV_OFFLINE": "1", "HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "DOCKER_HOST": NOWHERE}
    quiet = {"CDK_DISABLE_CLI_TELEMETRY": "true", "CDK_DISABLE_VERSION_CHECK": "true"}
    cdk = str(ROOT / "node_modules" / ".bin" / "cdk")
    command = [cdk, "synth", "--quiet", "--no-notices", "-c", f"env={environment}", "--output", str(output)]
    return subprocess.run(  # noqa: S603 (the pinned tool of this checkout)
        command, cwd=ROOT, env={**os.environ, **offline, **quiet}, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_cdk_synth_needs_only_the_files_of_make_setup(tmp_path: Path) -> None:
    """After `make setup`, `cdk synth` needs neither network nor Docker, and writes the named environment's stack."""
    done = synth("local", tmp_path)
    assert done.returncode == 0, done.stderr
    template = json.loads((tmp_path / "duetime-local.template.json").read_text())
    assert "ApiUrl" in template["Outputs"]
