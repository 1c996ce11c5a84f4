"""Takes documents apart and puts them together around translated sentences."""
