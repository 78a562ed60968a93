"""Bulk requests and bulk operations over REST."""
