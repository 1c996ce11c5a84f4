"""Other systems' weights become run folders, and run folders theirs."""

import os

from command_line.quiet_tensorflow import start_tensorflow

# oneDNN's own keeps what a model needed while it was made, and was given back:
# half of its size.
os.environ.setdefault("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "1")
start_tensorflow()
