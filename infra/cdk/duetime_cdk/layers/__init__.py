"""Builds the Lambda layers with the package itself, its dependencies, and the user's handlers."""
