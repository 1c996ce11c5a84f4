"""Trains a Transformer (Vaswani et al., 2017, Section 5)."""

import os

# TensorFlow reads this when it is first imported: no notes on the hardware.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# oneDNN's matrix products: a sixth less time an update on two cores with AVX2,
# where TensorFlow leaves them off (it has them on with AVX-512).
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
