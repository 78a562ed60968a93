"""Benchmarks, which compare two measurements from the same run, because timings vary between machines and runs."""
