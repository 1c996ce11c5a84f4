"""Progress, reports, cost estimates, BLEU and attention maps of training."""
