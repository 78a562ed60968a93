"""Topologies over REST."""
