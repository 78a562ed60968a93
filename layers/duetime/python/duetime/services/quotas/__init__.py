"""Quotas: what each owner may use, what it uses, and who may change that."""
