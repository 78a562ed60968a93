"""The REST contract: what requests may say and how they are answered, without HTTP and without AWS."""
