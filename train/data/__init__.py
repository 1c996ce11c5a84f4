"""What a batch is: corpora, vocabulary, encoding, the plan of batches."""
