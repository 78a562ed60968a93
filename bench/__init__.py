"""Benchmarks. They compare two measurements of the same run, because machines are noisy."""
