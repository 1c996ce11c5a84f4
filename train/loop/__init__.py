"""What one update is: the task, its loss, the optimizer, workers."""
