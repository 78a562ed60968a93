"""The use cases: what duetime does, over ports."""
