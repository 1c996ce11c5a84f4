"""Progress, corpus report, BLEU and final model of a training."""
