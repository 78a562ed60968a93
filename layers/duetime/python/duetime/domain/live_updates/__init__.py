"""Live updates: who watches what, and what is pushed to them. Values and decisions."""
