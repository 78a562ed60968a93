"""Readers of other schedulers' files: each makes schedules for a manifest, and says what it could not carry over."""
