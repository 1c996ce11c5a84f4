"""Export to CTranslate2's model format."""
