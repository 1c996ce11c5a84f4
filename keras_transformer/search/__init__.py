"""Beam search (Vaswani et al., 2017, Section 6.1)."""
