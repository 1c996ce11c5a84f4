"""Readers of corpora by format: each yields the pairs of two languages."""
