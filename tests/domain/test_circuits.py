from __future__ import annotations

import pytest

from duetime.adapters.targets.http_messages import NOT_SENT, OURS
from duetime.domain.circuit_breakers import Circuit, CircuitState, Sign, sign_of
from duetime.domain.operating_parameters import CIRCUIT_LONGEST_OPEN, CIRCUIT_OPEN, CIRCUIT_PATIENCE
from duetime.domain.tasks.attempt_results import (
    Deferred,
    NotSent,
    Postponed,
    Stopped,
    Succeeded,
    TargetEnding,
    Yielded,
    failure,
)
from duetime.domain.tasks.targets import HandlerTarget, HttpTarget, host_of
from duetime.domain.times import MINUTE, SECOND
from tests.domain.factories import NOW

HOST = "example.org"


def test_a_circuit_opens_for_twice_as_long_each_time() -> None:
    """The open time doubles from thirty seconds up to ten minutes, and starts again once the circuit has closed."""
    circuit, lengths, now = Circuit("ann", HOST), [], NOW
    for _ in range(7):
        circuit = circuit.opened("Http503", now)
        lengths.append(circuit.open_until - now)
        now = circuit.open_until
    assert lengths == [CIRCUIT_OPEN * 2**n for n in range(5)] + [CIRCUIT_LONGEST_OPEN] * 2
    assert circuit.opened_at == NOW
    assert circuit.closed().opened("Http503", now).open_until == now + CIRCUIT_OPEN


def test_a_circuit_is_half_open_when_its_time_is_over() -> None:
    """An open circuit is half-open after its time; a probe ends at its own time or when the circuit opens again."""
    circuit = Circuit("ann", HOST).opened("Http503", NOW)
    assert Circuit("ann", HOST).state(NOW) is CircuitState.CLOSED
    assert circuit.state(circuit.open_until - 1) is CircuitState.OPEN
    assert circuit.state(circuit.open_until) is CircuitState.HALF_OPEN
    probed = circuit.probed(NOW + 60_000)
    assert [probed.is_probed(NOW + 59_999), probed.is_probed(NOW + 60_000)] == [True, False]
    assert not probed.opened("Http503", NOW + 50_000).is_probed(NOW + 50_000)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Example.ORG/report?x=1", "example.org"),
        ("https://example.org:443/", "example.org"),
        ("http://example.org:443/", "example.org:443"),
        ("http://127.0.0.1:8000/run", "127.0.0.1:8000"),
        ("https://[2001:db8::1]/", "2001:db8::1"),
        ("https://example.org./", "example.org"),
        (f"https://{'a' * 300}.example.org/", None),
        ("https://example.org:99999/", None),
        ("nonsense", None),
    ],
)
def test_equivalent_spellings_of_host_and_port_share_a_circuit(url: str, host: str | None) -> None:
    """Spelling and default ports make no difference to a circuit's host, and an invalid host has no circuit."""
    assert host_of(HttpTarget(url)) == host
    assert host_of(HandlerTarget()) is None


ENDINGS: list[tuple[TargetEnding, Sign]] = [
    (Succeeded(b"1"), Sign.WELL),
    (Deferred(), Sign.WELL),
    (failure("Http500", ""), Sign.ILL),
    (failure("Http599", ""), Sign.ILL),
    (failure("ConnectTimeoutError", ""), Sign.ILL),
    (failure("HostUnknown", ""), Sign.ILL),
    (failure("Http404", "", retriable=False), Sign.WELL),
    (failure("Http429", "", wait_at_least=5_000), Sign.WELL),
    (failure("Http301", "", retriable=False), Sign.WELL),
    (failure("AnswerTooLarge", "", retriable=False), Sign.WELL),
    (failure("DestinationRefused", "", retriable=False), Sign.NOTHING),
    (Postponed(NOW, "a lock"), Sign.NOTHING),
    (Yielded(None), Sign.NOTHING),
    (Stopped(), Sign.NOTHING),
    (NotSent("the egress function"), Sign.NOTHING),
    *((failure(kind, ""), Sign.NOTHING) for kind in sorted(OURS - NOT_SENT)),
]


@pytest.mark.parametrize(("ending", "sign"), ENDINGS)
def test_only_connection_failures_timeouts_and_5xx_responses_count_against_a_host(
    ending: TargetEnding, sign: Sign
) -> None:
    """Connection failures, timeouts and 5xx responses count as failures; other responses show that a host works."""
    assert sign_of(ending, given=MINUTE, usual=SECOND) is sign


@pytest.mark.parametrize(
    ("given", "usual", "sign"),
    [
        (9_999, 0, Sign.NOTHING),
        (CIRCUIT_PATIENCE, 0, Sign.ILL),
        (CIRCUIT_PATIENCE, 5 * SECOND, Sign.ILL),
        (59_999, 30 * SECOND, Sign.NOTHING),
        (MINUTE, 30 * SECOND, Sign.ILL),
    ],
)
def test_a_timeout_counts_only_after_twice_the_usual_response_time(given: int, usual: int, sign: Sign) -> None:
    """A timeout counts only after ten seconds and after twice the host's usual response time."""
    assert sign_of(failure("Timeout", ""), given=given, usual=usual) is sign
    assert sign_of(failure("ConnectTimeoutError", ""), given=given, usual=usual) is Sign.ILL
