from __future__ import annotations

from tests.reports import escape_surrogates


def test_lone_surrogates_in_a_report_are_escaped() -> None:
    """Lone surrogates are escaped at any depth of a report, and other values are unchanged."""
    report = {
        "longrepr": {"\ud800": ["é \udce9"]},
        "sections": [("stdout", "\udc00")],
        "duration": 0.5,
        "wasxfail": None,
    }
    assert escape_surrogates(report) == {
        "longrepr": {"\\ud800": ["é \\udce9"]},
        "sections": [("stdout", "\\udc00")],
        "duration": 0.5,
        "wasxfail": None,
    }
