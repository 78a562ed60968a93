"""The console function, which serves the web console's static files from the same origin as the API."""
