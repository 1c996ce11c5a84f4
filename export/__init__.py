"""Turns a trained model into a SavedModel that serves (Section 6.1)."""

import os

# TensorFlow reads this when it is first imported: no notes on the hardware.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
