"""What lies beside the graph: versions, digests, warm-up, samples."""
