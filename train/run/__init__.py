"""What lasts on disk: the run folder, its checkpoints and its state."""
