"""The web console: serves its static files from the same origin as the API."""
