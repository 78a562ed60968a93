"""The attempts function: receives reports from running handlers in their own packages."""
