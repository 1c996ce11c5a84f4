"""TensorFlow graph of an export: tokenizer, search, scoring, signatures."""
