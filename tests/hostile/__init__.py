"""Hostile input: requests from strangers, sent to the api function in process, and the required responses."""
