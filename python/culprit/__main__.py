"""``python -m culprit``: the program."""

import os
import sys

from ._program import program


def main() -> None:
    os.execv(program(), ["culprit", *sys.argv[1:]])


if __name__ == "__main__":
    main()
