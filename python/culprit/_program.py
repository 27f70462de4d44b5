"""Where the program of this package lies; importing this loads nothing else."""

import os


def program() -> str:
    """Path of the program ``culprit`` of this package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "program", "bin", "culprit")
