"""Text that training and exports both read: placeholders, language tags."""
