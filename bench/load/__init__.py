"""Load: what one machine's stack carries, and what it does with more than it carries."""
