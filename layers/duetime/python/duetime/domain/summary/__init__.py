"""How many tasks there are: of each type, state and priority."""
