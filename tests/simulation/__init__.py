"""Random faults in virtual time: the same seed makes the same run."""
