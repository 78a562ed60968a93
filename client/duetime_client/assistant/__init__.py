"""Offers the API's operations to AI assistants as tools, over the Model Context Protocol (`duetime mcp`)."""
