"""Tests that send hostile requests from strangers to the api function in process, and check the responses."""
