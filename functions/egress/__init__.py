"""The egress function, which makes HTTP calls for other functions. It may only read these calls' secrets."""
