"""Converts models of other systems to run folders, and back."""

import os

from command_line.quiet_tensorflow import start_tensorflow

# oneDNN's allocator would keep memory that was freed after the model was made,
# half of the model's size.
os.environ.setdefault("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "1")
start_tensorflow()
