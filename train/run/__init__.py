"""Run folder on disk: description, checkpoints, training state, final model."""
