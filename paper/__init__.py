"""Repeats the tables of the paper, beside the paper's numbers."""

import train  # noqa: F401  TensorFlow starts as it does for a training.
