"""The remote end of a call, which is a socket on the loopback interface that a test scripts."""

from __future__ import annotations

import datetime as dt
import re
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LOOPBACK = "127.0.0.1"


@dataclass
class Peer:
    """A listening socket.

    Attributes:
        requests: the requests received.
        names: the names that TLS clients requested (SNI).
        over: an event that is set when the test ends, so that scripts stop sleeping.
    """

    port: int = 0
    requests: list[bytes] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def peer(script: Callable[[socket.socket, Peer], None], tls: ssl.SSLContext | None = None) -> Iterator[Peer]:
    """Run a script for every incoming connection; the script reads the request itself."""
    listening = socket.create_server((LOOPBACK, 0))
    kept = Peer(port=listening.getsockname()[1])
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: kept.names.append(name)

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=_behave, args=(connection,), daemon=True).start()

    def _behave(connection: socket.socket) -> None:
        with suppress(OSError, ssl.SSLError), connection:
            accepted = tls.wrap_socket(connection, server_side=True) if tls else connection
            with accepted:
                script(accepted, kept)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        kept.over.set()
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def answering(data: bytes) -> Callable[[socket.socket, Peer], None]:
    """Read a request, send some bytes, and close."""

    def script(connection: socket.socket, kept: Peer) -> None:
        kept.requests.append(read_request(connection))
        connection.sendall(data)

    return script


def dripping(head: bytes, drop: bytes) -> Callable[[socket.socket, Peer], None]:
    """Send the start of a response at once, then a few bytes repeatedly, each time before the socket would time out."""

    def script(connection: socket.socket, kept: Peer) -> None:
        kept.requests.append(read_request(connection))
        connection.sendall(head)
        while not kept.over.wait(0.05):
            connection.sendall(drop)

    return script


def read_request(connection: socket.socket) -> bytes:
    """Read a request with its body, because closing a socket with unread data would discard the response."""
    data = b""
    while b"\r\n\r\n" not in data or len(data.partition(b"\r\n\r\n")[2]) < _length(data):
        part = connection.recv(65_536)
        if not part:
            break
        data += part
    return data


def _length(data: bytes) -> int:
    found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", data)
    return int(found[1]) if found else 0


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, Path]:
    """Return a TLS context with a certificate for a name, and the file that makes a client trust the certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    alternatives: list[x509.GeneralName] = [x509.DNSName(name)]
    if name == LOOPBACK:
        alternatives = [x509.IPAddress(ip_address(name))]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    shown, secret = folder / "certificate.pem", folder / "key.pem"
    shown.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown, secret)
    return context, shown
