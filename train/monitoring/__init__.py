"""Progress, corpus report and BLEU of a training."""
