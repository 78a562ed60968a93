"""Hostile input: requests of strangers, sent to the api function in process, and the required responses."""
