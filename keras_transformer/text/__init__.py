"""Text to ids and back (Vaswani et al., 2017, Section 5.1)."""
