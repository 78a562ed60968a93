"""Starts and stops the embedded AWS."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, cast, overload

import boto3
import botocore.session
from botocore.config import Config

from duetime_local.emulator import source_paths
from duetime_local.emulator.errors import EmulatorFailed, EmulatorNotInstalled
from duetime_local.emulator.installation import interpreter
from duetime_local.emulator.location import free_port, roomy_memory, usable_port
from duetime_local.emulator.source_paths import PACKAGE_FILE
from duetime_local.local_secrets import local_secrets
from duetime_local.supervised_process import guarded

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_stepfunctions import SFNClient

STARTER = Path(__file__).with_name("starter.py")
"""The script that starts the emulator."""
LOOPBACK = "127.0.0.1"
REGION = "us-east-1"
ACCOUNT = "000000000000"
SECRET = "none"  # noqa: S105 - the emulator checks no signatures
HOME, TEMPORARY, STARTUP = "home", "tmp", "startup"
"""Subfolders of the emulator's folder."""
NO_DEBUGGER = "no debugger here; run the handler in a test with pytest --pdb"
"""The value of `PYTHONBREAKPOINT`, which is not a function's name, so `breakpoint()` prints a warning with this text
and continues.

A debugger would read requests to the function's process as debugger commands and block until the timeout."""
START_SECONDS = 120.0
"""The longest time to wait for the emulator's start, in seconds; the start usually takes two or three seconds."""
_PATIENT = Config(read_timeout=300, proxies={})
"""A client configuration with a long read timeout and without a proxy.

A function that starts at the same time as many other functions can take minutes to respond, and a retry would start a
second process. A proxy from the environment cannot reach this machine's loopback interface.
"""
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
SAVE_SECONDS = 30.0
"""The longest time to wait until a stopping emulator has saved its state, in seconds; saving takes one or two seconds
on an idle machine."""


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator, with its address and clients."""

    port: int
    folder: Path
    """The emulator's private folder, which is deleted when the emulator ends."""

    @property
    def endpoint_url(self) -> str:
        """The endpoint URL for all AWS services."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        """Environment variables that direct AWS SDKs and the CDK to this emulator only."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint_url,
            # The CDK caches account ids by access key; with a unique key, no account id is taken from this cache.
            "AWS_ACCESS_KEY_ID": f"duetime-local-{self.port}",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            # A proxy cannot reach this machine's loopback interface. Programs differ in which of these two names they
            # read.
            "NO_PROXY": LOOPBACK,
            "no_proxy": LOOPBACK,
        }

    def show_paths_of(self, package: Path) -> None:
        """Let processes that start after this call show the paths of the user's own files in handlers' tracebacks."""
        (self.folder / TEMPORARY / PACKAGE_FILE).write_text(str(package.resolve()), encoding="utf-8")

    @overload
    def client(self, service: Literal["apigatewayv2"]) -> Any: ...  # noqa: ANN401 - it has no stubs here
    @overload
    def client(self, service: Literal["cloudformation"]) -> CloudFormationClient: ...
    @overload
    def client(self, service: Literal["dynamodb"]) -> DynamoDBClient: ...
    @overload
    def client(self, service: Literal["events"]) -> EventBridgeClient: ...
    @overload
    def client(self, service: Literal["lambda"]) -> LambdaClient: ...
    @overload
    def client(self, service: Literal["logs"]) -> Any: ...  # noqa: ANN401 - likewise
    @overload
    def client(self, service: Literal["s3"]) -> S3Client: ...
    @overload
    def client(self, service: Literal["secretsmanager"]) -> SecretsManagerClient: ...
    @overload
    def client(self, service: Literal["sqs"]) -> SQSClient: ...
    @overload
    def client(self, service: Literal["ssm"]) -> Any: ...  # noqa: ANN401 - likewise
    @overload
    def client(self, service: Literal["stepfunctions"]) -> SFNClient: ...
    def client(
        self,
        service: Literal[
            "apigatewayv2",
            "cloudformation",
            "dynamodb",
            "events",
            "lambda",
            "logs",
            "s3",
            "secretsmanager",
            "sqs",
            "ssm",
            "stepfunctions",
        ],
    ) -> object:
        """Return a boto3 client for a service of this emulator."""
        return _client(self.endpoint_url, self.environ["AWS_ACCESS_KEY_ID"], service)


@cache
def _client(endpoint_url: str, access_key: str, service: str) -> object:
    """Create a client; clients are cached, because each takes a tenth of a second to create."""
    # The session ignores the user's AWS profile and configuration files, because a missing profile would be an error.
    bare = botocore.session.Session(
        {"profile": (None, None, None, None), "config_file": (None, None, os.devnull, None)}
    )
    session = boto3.Session(
        aws_access_key_id=access_key,
        aws_secret_access_key=SECRET,
        region_name=REGION,
        botocore_session=bare,
    )
    # The service is one of the names in `Emulator.client`.
    return cast("Any", session).client(service, endpoint_url=endpoint_url, config=_PATIENT)


@contextmanager
def running(port: int | None = None, data_dir: Path | None = None) -> Iterator[Emulator]:
    """Run an emulator on 127.0.0.1 within the context, by default on `PREFERRED_PORT` or a free port.

    With `data_dir`, the emulator's state is saved in that folder, but only on a graceful stop.
    """
    program = interpreter()
    if not program.exists():
        raise EmulatorNotInstalled
    port = usable_port() if port is None else free_port(port)
    folder = Path(tempfile.mkdtemp(prefix="duetime-", dir=roomy_memory()))
    with (
        tempfile.TemporaryFile() as log,
        guarded(
            # With -P, the starter's folder is not added to the import path.
            [str(program), "-P", str(STARTER)],
            environ=_environment(port, folder, data_dir),
            cwd=folder,
            output=log,
            folder=folder,
            grace_seconds=SAVE_SECONDS if data_dir else 0,
        ) as process,
    ):
        _wait_until_ready(port, process, log)
        yield Emulator(port, folder)


def _environment(port: int, folder: Path, data_dir: Path | None) -> dict[str, str]:
    """Return the complete environment of the server, which every function inherits."""
    home, temporary, startup = folder / HOME, folder / TEMPORARY, folder / STARTUP
    for path in (home, temporary, startup):
        path.mkdir()
    shutil.copyfile(source_paths.__file__, startup / "sitecustomize.py")
    environ = {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "GATEWAY_PORT": str(port),
        "BIND_HOST": LOOPBACK,  # the default is every interface
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "LOG_LEVEL": "WARNING",
        "PYTHONBREAKPOINT": NO_DEBUGGER,
        "PYTHONPATH": str(startup),
        "STATE_DIR": str(folder / "state"),
        "S3_DATA_DIR": str(folder / "s3"),
        # The default depends on the machine's memory and can be too low for the three queues, the tasks' calls and the
        # API together.
        "LAMBDA_ACCOUNT_CONCURRENCY": "128",
    }
    environ |= local_secrets()
    if data_dir is not None:
        environ |= {
            "PERSIST_STATE": "1",
            "STATE_DIR": str(data_dir / "state"),
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(data_dir / "s3"),
        }
    return environ


def _wait_until_ready(port: int, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _answers(port):
        if process.poll() is not None:
            raise EmulatorFailed("ended while it started", _last_lines(log))
        if time.monotonic() > deadline:
            raise EmulatorFailed(f"did not respond within {START_SECONDS:.0f} s", _last_lines(log))
        time.sleep(0.02)


def _answers(port: int) -> bool:
    try:
        with _DIRECT.open(f"http://{LOOPBACK}:{port}/_ministack/ready", timeout=2) as answer:
            return bool(answer.status == 200)  # noqa: PLR2004 - HTTP's own number
    except (urllib.error.URLError, OSError):
        return False


def _last_lines(log: IO[bytes], count: int = 15) -> str:
    log.seek(0)
    return "\n".join(log.read().decode(errors="replace").splitlines()[-count:])
