"""``python -m culprit``: the program."""

import os
import sys

from ._record import program


def main() -> None:
    os.execv(program(), ["culprit", *sys.argv[1:]])


if __name__ == "__main__":
    main()
