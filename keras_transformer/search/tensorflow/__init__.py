"""Beam search and sampling as fast TensorFlow graphs (Section 6.1)."""
