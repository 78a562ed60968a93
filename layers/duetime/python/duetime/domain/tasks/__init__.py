"""Tasks: the record, its states, attempts and targets."""
