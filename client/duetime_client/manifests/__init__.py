"""Files of schedules: what they say, how that differs from what there is, and making it so."""
