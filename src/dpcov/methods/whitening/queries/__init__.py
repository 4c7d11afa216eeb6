"""Queries that only the default method asks, each with its proof note."""
