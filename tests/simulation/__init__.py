"""Random faults in virtual time: the same seed gives the same run."""
