"""Runs the complete stack on one machine, in an embedded AWS, and runs a demo with real input data."""
