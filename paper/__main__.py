"""Names the commands that make the paper's tables again.

python -m paper.table1 --help    time and memory of layers (Section 4)
python -m paper.table2 --help    training cost (Section 6.1)
python -m paper.table3 --help    variations of the model (Section 6.2)
"""

import sys

if __name__ == "__main__":
    print(__doc__, file=sys.stderr)
    raise SystemExit(2)
