"""Reads corpora, learns the vocabulary, encodes text and makes batches."""
