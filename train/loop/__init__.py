"""One training update: model, loss, optimizer, workers."""
