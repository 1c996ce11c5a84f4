"""Exports a model for LiteRT, TensorFlow's runtime for devices."""
