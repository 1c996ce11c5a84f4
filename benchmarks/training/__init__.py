"""Training beside other systems."""
