"""Translates corpora on Apache Beam: on one machine, or on many."""
