"""The ports over the outside world; nothing else of duetime knows AWS."""
