from __future__ import annotations

import pytest

from duetime.adapters.targets.http_client import AddressForbidden, find

NOBODY: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "0x7f.1",
        "2130706433",
        "017700000001",
        "0.0.0.0",  # noqa: S104 - refused
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.0.8",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[::1]",
        "[::]",
        "[fe80::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[fec0::1]",
        "[ff02::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:10.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::]",
        "[2001:db8::1]",
        # Other spellings of the same addresses that a resolver may understand.
        "0177.0.0.1",
        "0x7f000001",
        "127.0.1",
        "127.000.000.001",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:7f00:1]",
        "[::ffff:0:7f00:1]",
        "[0000::ffff:a9fe:a9fe]",
        "[::a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "[fe80::1%25lo]",
        "0",
        "0x0",
        "0xa9fea9fe",
        "2852039166",
        "169.254.170.2",
        "169.254.169.253",
        # Other ranges that the registries reserve.
        "100.127.255.255",
        "172.31.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "192.88.99.1",
        "239.255.255.255",
        "240.0.0.1",
        "[100::1]",
        "[2001:20::1]",
        "[3fff::1]",
        "[4000::1]",
        "[5f00::1]",
        "[febf::1]",
        "[feff::1]",
    ],
)
def test_an_address_that_is_not_public_is_rejected(host: str) -> None:
    """Loopback, private, link-local, metadata, multicast, mapped and tunneled addresses are refused."""
    with pytest.raises((AddressForbidden, OSError)):
        find(f"http://{host}/", NOBODY)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "0x7f.1", "2130706433", "017700000001", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_loopback_is_rejected_in_every_spelling(host: str) -> None:
    """A loopback spelling that the resolver understands is refused because of its address, not as malformed."""
    with pytest.raises(AddressForbidden, match="not a public address"):
        find(f"http://{host}/", NOBODY)


@pytest.mark.parametrize("host", ["8.8.8.8", "100.63.255.255", "172.32.0.1", "[2606:4700::1111]", "[2a00::1]"])
def test_public_addresses_next_to_rejected_ranges_are_accepted(host: str) -> None:
    """Public addresses next to refused ranges are accepted."""
    assert find(f"http://{host}/", NOBODY).address


@pytest.mark.parametrize("host", ["\uff11\uff12\uff17.0.0.1", "\u2460\u2461\u2466.0.0.1"])
def test_digits_of_other_scripts_never_resolve_to_loopback(host: str) -> None:
    """Digits of other scripts are refused or do not resolve, and never lead to loopback."""
    with pytest.raises((AddressForbidden, OSError, UnicodeError)):
        find(f"http://{host}/", NOBODY)


def test_a_public_address_is_called_as_checked() -> None:
    """A destination has the checked address, and the host, port and path of the URL."""
    destination = find("https://1.1.1.1/a/b?c=d", NOBODY)
    assert (destination.address, destination.host, destination.port, destination.path) == (
        "1.1.1.1",
        "1.1.1.1",
        443,
        "/a/b?c=d",
    )


def test_an_allowed_host_may_be_private() -> None:
    """The local stack allows a loopback host only by the exact name in the settings."""
    assert find("http://127.0.0.1:8080", frozenset({"127.0.0.1"})).port == 8080
    with pytest.raises(AddressForbidden):
        find("http://127.0.0.2:8080", frozenset({"127.0.0.1"}))


@pytest.mark.parametrize("url", ["ftp://1.1.1.1/", "http:///path", "1.1.1.1", ""])
def test_what_is_no_http_url_is_refused(url: str) -> None:
    """A URL with a scheme other than HTTP, or without a host, is refused."""
    with pytest.raises(AddressForbidden):
        find(url, NOBODY)
