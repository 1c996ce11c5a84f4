"""Repeats the tables of the paper, beside the paper's numbers."""
