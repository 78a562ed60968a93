"""Importers for other schedulers' files; each creates a manifest's schedules and reports what it cannot carry over."""
