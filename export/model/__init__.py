"""The graph: text in, search, questions to it, text out."""
