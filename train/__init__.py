"""Trains a Transformer (Vaswani et al., 2017, Section 5)."""

import os

from command_line.quiet_tensorflow import start_tensorflow

# oneDNN's matrix products: a sixth less time an update on two cores with AVX2,
# where TensorFlow leaves them off (it has them on with AVX-512).
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
start_tensorflow()
