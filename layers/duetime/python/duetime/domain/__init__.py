"""What a task is and what may happen to it: pure values and decisions, given the time."""
