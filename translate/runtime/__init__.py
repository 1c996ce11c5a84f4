"""Runtimes of an export: SavedModel, TF Serving, LiteRT and CTranslate2."""
