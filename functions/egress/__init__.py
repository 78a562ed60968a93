"""The egress function: makes HTTP calls for other functions; it may only read its signing and call secrets."""
