"""Trees as text, and mending what a model wrote (Section 6.3)."""
