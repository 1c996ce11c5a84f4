"""Trains a Transformer (Vaswani et al., 2017, Section 5)."""

import os

# TensorFlow reads this when it is first imported: no notes on the hardware.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
