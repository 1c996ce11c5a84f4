"""Text that training and exports both read: trees, placeholders, language tags."""
