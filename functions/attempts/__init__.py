"""The attempts function: receives the reports of running handlers in packages of their own."""
