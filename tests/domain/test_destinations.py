"""URLs are checked before their host names are resolved."""

from __future__ import annotations

import pytest

from duetime.domain.tasks.allowed_targets import literal_address, refusal

NOBODY: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "0X7F.0.0.1",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "0x7f000001",
        "127.000.000.001",
        "127.0.0.1.",
        "0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "169.254.170.2",
        "2852039166",
        "0xa9fea9fe",
        "100.64.0.1",
        "255.255.255.255",
        "[::1]",
        "[::]",
        "[fe80::1%25lo]",
        "[fd00:ec2::254]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "\uff11\uff12\uff17.0.0.1",
        "\u2460\u2461\u2466.0.0.1",
        "127\u30020\u30020\u30021",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "api.localhost",
        "localhost.localdomain",
        "printer.local",
        "metadata.google.internal",
        "instance-data.ec2.internal",
        "nas.home.arpa",
    ],
)
def test_private_addresses_and_nonpublic_names_are_rejected(host: str) -> None:
    """Private addresses in every spelling, and names that are never public, are refused."""
    assert "not a public address" in (refusal(f"https://{host}/hook", NOBODY) or "")


@pytest.mark.parametrize(
    "host",
    [
        "example.org",
        "8.8.8.8",
        "0x08080808",
        "[2606:4700::1111]",
        "localhost.example.org",
        "local.example.org",
        "1.2.3",
        "internal-tools.example.org",
        "10.0.0.1.nip.io",
        "256.256.256.256",
        "0x.example",
        "db",
    ],
)
def test_public_addresses_and_resolvable_names_are_accepted(host: str) -> None:
    """Public addresses and resolvable names are accepted; they are checked again when they are called."""
    assert refusal(f"https://{host}/hook", NOBODY) is None


@pytest.mark.parametrize("url", ["ftp://example.org/", "http:///path", "example.org", "", "http://example.org:99999/"])
def test_what_is_no_http_url_is_refused(url: str) -> None:
    """Other schemes, missing hosts and invalid ports are refused."""
    assert refusal(url, NOBODY) is not None


def test_port_zero_is_rejected() -> None:
    """Port zero is refused, because no server can listen on it; it is not replaced by the scheme's default port."""
    assert "port" in (refusal("https://example.org:0/", NOBODY) or "")


def test_an_allowed_host_may_be_private() -> None:
    """The setting for allowed hosts allows exactly the named host."""
    allowed = frozenset({"127.0.0.1", "localhost"})
    assert refusal("http://127.0.0.1:8080/", allowed) is None
    assert refusal("http://localhost:8080/", allowed) is None
    assert refusal("http://127.0.0.2:8080/", allowed) is not None
    assert refusal("http://127.1:8080/", allowed) is not None


@pytest.mark.parametrize(
    ("host", "address"),
    [("1.2.3.4", "1.2.3.4"), ("1.2", "1.0.0.2"), ("1.2.3", "1.2.0.3"), ("0x01020304", "1.2.3.4"), ("010.1", "8.0.0.1")],
)
def test_numeric_addresses_are_interpreted_as_by_a_resolver(host: str, address: str) -> None:
    """An address of one to four decimal, octal or hexadecimal numbers is read in the same way as by a resolver."""
    assert literal_address(host) == address


@pytest.mark.parametrize(
    "host", ["1.2.3.4.5", "256.1.1.1", "1.2.3.256", "4294967296", "08.1", "0x", "1..2", "a.b", "-1"]
)
def test_an_invalid_numeric_address_is_a_host_name(host: str) -> None:
    """Numbers out of range, invalid digits and words are read as host names."""
    assert literal_address(host) is None
