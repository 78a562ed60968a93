"""The attempts function, which receives reports from running handlers in handler packages."""
