"""The egress function, which makes HTTP calls for other functions. It may read only signing and call secrets."""
