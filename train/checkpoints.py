"""`python -m train.checkpoints average` is `python -m train.average` now."""

import sys

from command_line.errors import refuse_old_name

if __name__ == "__main__":
    refuse_old_name("train.average", sys.argv[2:])
