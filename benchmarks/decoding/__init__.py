"""Translation beside other systems."""
