"""The Lambda layers and how they are built: the package itself, its dependencies, the user's handlers."""
