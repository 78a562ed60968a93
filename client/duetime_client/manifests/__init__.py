"""Files of schedules: reading them, comparing them with the existing schedules, and applying the differences."""
