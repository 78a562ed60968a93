"""Running graphs of tasks: what follows the end of a node, what happens to the run, and what its users may ask."""
