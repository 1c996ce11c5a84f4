"""The layers of the model (Vaswani et al., 2017, Sections 3.1 to 3.5)."""
