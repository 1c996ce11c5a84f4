"""Versions of an export: SavedModel, digests, warm-up requests, samples."""
