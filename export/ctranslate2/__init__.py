"""The same weights in CTranslate2's format."""
