"""Translates HTML, XML and Markdown; only the sentences change."""
