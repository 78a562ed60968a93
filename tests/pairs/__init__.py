"""Runs two operations on one subject in every interleaving in which each of them is interrupted at most once."""
