from __future__ import annotations

from botocore.exceptions import ClientError

from duetime.domain.tracebacks import places_of


def _raise(error: Exception) -> Exception:
    try:
        raise error
    except type(error) as raised:
        return raised


def test_an_error_is_told_by_class_and_place_and_not_by_its_message() -> None:
    """The innermost place comes first; the message may quote what the error was about."""
    told = places_of(_raise(ValueError("confidential")))
    assert told.startswith("ValueError < test_tracebacks.py:")
    assert " in _raise" in told
    assert "confidential" not in told


def test_the_causes_of_an_error_are_told() -> None:
    """Two of them at the most, however many there are."""
    error: BaseException = ValueError()
    for _ in range(10):
        outer = RuntimeError()
        outer.__cause__ = error
        error = outer
    assert places_of(error) == "RuntimeError; caused by RuntimeError; caused by RuntimeError"


def test_an_error_of_aws_says_what_was_refused() -> None:
    """Whoever has to mend a policy needs the name of the action."""
    error = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "may not"}}, "PutItem")
    assert "AccessDeniedException" in places_of(error)
    assert "PutItem" in places_of(error)
