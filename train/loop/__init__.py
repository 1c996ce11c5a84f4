"""One training update: model, loss, optimizer, memory check."""
