"""Pages that show what a model does."""
