"""`python -m train.reproduce table2` is `python -m paper.table2` now."""

import sys

from command_line.errors import refuse_old_name

if __name__ == "__main__":
    table = "table3" if "table3" in sys.argv[1:2] else "table2"
    refuse_old_name(f"paper.{table}", sys.argv[2:])
