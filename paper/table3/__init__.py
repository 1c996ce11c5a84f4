"""The rows of Table 3, scaled to a budget, trained and compared."""
