"""``python -m culprit``: the program."""

import os
import sys

from ._program import program


def main() -> None:
    """Becomes the program, with the arguments of this one. OSError: it cannot be started."""
    os.execv(program(), ["culprit", *sys.argv[1:]])


if __name__ == "__main__":
    main()
