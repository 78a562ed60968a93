"""Large scale, simulated: what nobody here can run, from the documented limits of AWS and the counted use of a task."""
