"""The operations of the API as tools of an AI assistant, over the Model Context Protocol (`duetime mcp`)."""
