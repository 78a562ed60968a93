"""Runs the complete stack on one machine: deploys to an embedded AWS and runs a demo with real input data."""
