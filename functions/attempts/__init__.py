"""The attempts function: receives reports from running handlers in packages of their own."""
