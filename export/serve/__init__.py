"""A translation service: many clients, batches of like length, one page."""
