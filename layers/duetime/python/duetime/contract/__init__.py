"""The REST contract: the form of requests and responses, independent of HTTP and AWS."""
