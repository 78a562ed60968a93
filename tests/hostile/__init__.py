"""Hostile input: what strangers may send, sent to the api function in process, and what must come of it."""
