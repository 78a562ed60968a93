"""What the client and the core share: the standard library is enough, except for conditions and classes of payloads."""
