"""Shared parts of property tests, with settings that have no deadlines, because the machine may be busy."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from duetime.domain.limits import MAX_NUMBER_DIGITS

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
WITHOUT_SURROGATES = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**MAX_NUMBER_DIGITS) + 1, 10**MAX_NUMBER_DIGITS - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | WITHOUT_SURROGATES,
    lambda inner: st.lists(inner) | st.dictionaries(WITHOUT_SURROGATES, inner),
)
"""Return any JSON whose values are within the limits."""
