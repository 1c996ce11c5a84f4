"""Turns a trained model into a SavedModel that serves (Section 6.1)."""

from command_line.quiet_tensorflow import start_tensorflow

start_tensorflow()
