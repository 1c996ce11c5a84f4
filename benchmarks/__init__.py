"""Measurements against other systems, side by side; never part of the tests."""
