"""Cost estimates for tasks before they run."""
