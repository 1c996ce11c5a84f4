"""The embedded English-Spanish corpus: grammar, words, inflection."""
