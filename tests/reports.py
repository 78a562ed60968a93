"""Makes test reports valid for UTF-8, in which pytest-xdist sends them to the main process.

A report with a lone surrogate, for example an input that makes a property test fail, would end the whole run without
the test's failure.
"""

from __future__ import annotations

from typing import Any

from duetime.domain.json_values import writable


def escape_surrogates(report: Any) -> Any:  # noqa: ANN401 - a report is any JSON value, also with tuples
    """Return a serialized report in which lone surrogates are escaped as in Python."""
    match report:
        case str():
            return writable(report)
        case dict():
            return {writable(name): escape_surrogates(value) for name, value in report.items()}
        case list() | tuple():
            return type(report)(escape_surrogates(value) for value in report)
    return report
