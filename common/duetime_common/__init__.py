"""Code shared by the client and the core; only conditions and classes of payloads need more than the standard
library.
"""
