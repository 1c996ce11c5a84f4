"""Code that the benchmarks of training and of decoding share."""
