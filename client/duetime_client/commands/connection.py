"""The deployment that a command uses, and the exit codes of its errors."""

import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from duetime_client.authentication import Authentication, authenticated
from duetime_client.client import OWNER_HEADER, TIMEOUT_SECONDS, Client
from duetime_client.commands.clock import Clock
from duetime_client.commands.contexts import (
    CONTEXT_VARIABLE,
    Choice,
    ContextInvalid,
    ContextUnknown,
    DeploymentUnknown,
    LocalStackStopped,
    chosen,
    contexts_file,
    read_contexts,
)
from duetime_client.commands.document_output import OutputOptions
from duetime_client.commands.messages import show_error
from duetime_client.commands.output_streams import show_json
from duetime_client.errors import AddressInvalid, ClientError, CredentialsMissing, HeaderInvalid, Unreachable
from duetime_client.live_connection import WebSocketConnection
from duetime_client.retries import Retries
from duetime_client.session import Session

if TYPE_CHECKING:
    import httpx

    from duetime_client.io_runners import Runner
    from duetime_common.payload_codecs import PayloadCodec

API_KEY_VARIABLE = "DUETIME_API_KEY"
TOKEN_VARIABLE = "DUETIME_TOKEN"  # noqa: S105 - the name of a variable, not a secret
PANEL = "Deployment"

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="DUETIME_URL",
        help="Address of the API; default: the context in use, or the stack of this machine.",
        rich_help_panel=PANEL,
        metavar="URL",
    ),
]
Auth = Annotated[
    Authentication | None,
    typer.Option(
        "--auth",
        envvar="DUETIME_AUTH",
        help=f"iam: sign with the AWS credentials of the environment; bearer: send the token in {TOKEN_VARIABLE}; "
        f"key: send the API key in {API_KEY_VARIABLE}, the default if it is set.",
        rich_help_panel=PANEL,
    ),
]
Owner = Annotated[
    str | None,
    typer.Option(
        "--owner",
        envvar="DUETIME_OWNER",
        help="Owner to act for: one of your teams; on the local stack, any owner. Administrators can read any owner.",
        rich_help_panel=PANEL,
        metavar="NAME",
    ),
]
Codec = Annotated[
    str | None,
    typer.Option(
        "--codec",
        envvar="DUETIME_CODEC",
        help="Codec that encrypts sent values and decrypts shown values; the module can be in this folder.",
        rich_help_panel=PANEL,
        metavar="MODULE:NAME",
    ),
]


class Documented(Protocol):
    """An object that was read from a response, with the response's JSON."""

    @property
    def document(self) -> Mapping[str, Any]:
        """The API's JSON."""
        ...


D = TypeVar("D", bound=Documented)


@dataclass(frozen=True, slots=True)
class Deployment:
    """The options that choose the deployment and the caller's identity."""

    url: Url = None
    auth: Auth = None
    owner: Owner = None
    codec: Codec = None

    def resolved(self) -> "Deployment":
        """Fill in missing options from the context, unless an address was given."""
        if self.url is not None:
            return self
        context = resolved().context
        auth = Authentication(context.auth)
        # If the context has no authentication, the method depends on whether the environment has an API key.
        known = None if auth is Authentication.NONE else auth
        owner, codec = self.owner or context.owner or None, self.codec or context.codec or None
        return Deployment(context.url, self.auth or known, owner, codec)

    def loaded_codec(self) -> "PayloadCodec | None":
        """Import the codec; `None` if no codec is named.

        Raises:
            BadParameter: The codec cannot be imported, or is not a codec.
        """
        if not self.codec:
            return None
        found: Any = object_at(self.codec, "MODULE:NAME, such as codec:CODEC", "--codec")
        if not all(callable(getattr(found, method, None)) for method in ("encode", "decode")):
            raise typer.BadParameter(f"{self.codec!r} has no methods encode and decode", param_hint="--codec")
        codec: PayloadCodec = found
        return codec

    @property
    def api_key(self) -> str | None:
        """The API key from the environment, if requests are authorized with a key.

        Raises:
            CredentialsMissing: The method `key` is chosen, and the environment has no key.
        """
        key = os.environ.get(API_KEY_VARIABLE, "")
        if self.auth is Authentication.KEY and not key:
            raise CredentialsMissing(f"authentication by API key needs a key in {API_KEY_VARIABLE}")
        return key or None if self.auth in {None, Authentication.KEY} else None


@dataclass(frozen=True, slots=True)
class SilentCall:
    """A call of a command that uses a deployment, but prints no document from the deployment."""

    context: typer.Context
    deployment: Deployment

    @property
    def clock(self) -> Clock:
        """The clock and the time zone."""
        return self.context.ensure_object(Clock)

    def client(self) -> AbstractContextManager[Client]:
        """A client for the deployment; client errors end the command with a message and an exit code."""
        return connected(self.context, self.deployment)


@dataclass(frozen=True, slots=True)
class Call(SilentCall):
    """A call of a command that prints a document from its deployment, or a view of the document."""

    output: OutputOptions

    @property
    def as_json(self) -> bool:
        """Whether the document is printed, in any format, instead of a view."""
        return self.output.printing is not None

    def show(self, found: D, view: Callable[[D, Clock], object]) -> None:
        """Print the document of a response, or a view of the document."""
        if self.as_json:
            show_json(found.document)
        else:
            view(found, self.clock)

    def show_all(self, found: Sequence[D], view: Callable[[Sequence[D], Clock], object]) -> None:
        """Print the documents of entries as one array, or a view of the entries."""
        if self.as_json:
            show_json([each.document for each in found])
        else:
            view(found, self.clock)


def object_at(where: str, form: str, hint: str | None = None, *, is_local: bool = False) -> object:
    """Import an object given as `module:name`; the module may be in the current directory.

    Args:
        where: the name of the object.
        form: the expected form of the name, for the error.
        hint: the option or argument that names the object, for the error.
        is_local: whether modules of the current directory come before installed modules.

    Raises:
        BadParameter: The object cannot be imported.
    """
    module_name, colon, name = where.partition(":")
    if not module_name or not colon or not name:
        raise typer.BadParameter(f"{where!r} is not {form}", param_hint=hint)
    here = str(Path.cwd())
    if here not in sys.path:
        # A context's codec applies in any directory, so a directory's other modules must not replace installed modules.
        sys.path.insert(0 if is_local else len(sys.path), here)
    try:
        found: object = getattr(import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise typer.BadParameter(f"{where!r} cannot be loaded: {error}", param_hint=hint) from error
    return found


def resolved() -> Choice:
    """The context that commands use here."""
    return chosen(read_contexts(contexts_file()), os.environ.get(CONTEXT_VARIABLE, ""), Path.cwd())


@contextmanager
def connected(context: typer.Context, deployment: Deployment) -> Iterator[Client]:
    """A client for a deployment; client errors end the command with a message and an exit code."""
    with _errors(), client_of(context, deployment) as client:
        yield client


def client_of(context: typer.Context, deployment: Deployment) -> Client:
    """A client of a deployment.

    Raises:
        ClientError: no deployment is named, or its address or credentials are not valid.
    """
    clock, used = context.ensure_object(Clock), deployment.resolved()
    return Client(
        used.url or "",
        auth=_authentication(used),
        api_key=used.api_key,
        owner=used.owner,
        codec=used.loaded_codec(),
        sleep=clock.sleep,
        now=clock.now,
    )


@contextmanager
def connected_runner(context: typer.Context, deployment: Deployment) -> Iterator["Runner"]:
    """A runner without the client's methods, for requests that are known only at run time."""
    with _errors():
        used = deployment.resolved()
        with runner_of(used, context.ensure_object(Clock)) as runner:
            yield runner


@contextmanager
def runner_of(used: Deployment, clock: Clock) -> Iterator["Runner"]:
    """A runner that sends requests with the client's retries."""
    import httpx  # noqa: PLC0415 - its import takes a while

    from duetime_client.http import authorized, checked, http_options  # noqa: PLC0415 - as above
    from duetime_client.io_runners import Runner  # noqa: PLC0415 - as above

    url, auth = authorized(checked(used.url or ""), _authentication(used), used.api_key)
    session = Session(url, Retries(), random.random, clock.now, codec=used.loaded_codec())
    options = http_options(session.url, {OWNER_HEADER: used.owner} if used.owner else {}, TIMEOUT_SECONDS)
    with closing(httpx.Client(auth=auth, **options)) as http:
        yield Runner(session, http, clock.sleep, WebSocketConnection)


def _authentication(used: Deployment) -> "httpx.Auth | None":
    return authenticated(used.auth or Authentication.NONE, os.environ.get(TOKEN_VARIABLE, ""))


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        show_error(error)
        raise typer.Exit(exit_code_of(error)) from error


def exit_code_of(error: ClientError) -> int:
    """1: the API rejected the request, 2: the command line is not valid, 3: the API did not respond."""
    match error:
        case AddressInvalid() | CredentialsMissing() | HeaderInvalid() | ContextInvalid() | ContextUnknown():
            return 2
        case DeploymentUnknown() | LocalStackStopped():
            return 2
        case Unreachable():
            return 3
        case _:
            return 1
