"""Turns a trained model into a SavedModel that serves (Section 6.1)."""
