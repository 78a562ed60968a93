"""The web console: serves its static files, beside the API and under the same origin."""
