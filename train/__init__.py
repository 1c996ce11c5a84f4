"""Trains a Transformer (Vaswani et al., 2017, Section 5)."""
