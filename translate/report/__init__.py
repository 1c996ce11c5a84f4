"""HTML reports on a model's translations."""
