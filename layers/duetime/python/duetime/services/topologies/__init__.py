"""Running graphs of tasks: what follows the end of a node, what becomes of the run, and what its users may ask."""
