"""The end of an attempt, whoever made it."""
