"""Translates HTML, XML and Markdown: what is no sentence stays as it is."""
