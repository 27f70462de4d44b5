"""What every call raises for what its input causes."""


class Error(Exception):
    """The program's own message: where, what is wrong, and what to do about it.

    ``kind`` is "usage", "input", "environment" or "cancelled"; ``what``, ``where`` (of a file its path) and ``remedy`` are the parts of the message; what it lacks is empty.
    """

    def __init__(self, message: str, kind: str = "input", what: str = "", where: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.kind, self.what, self.where, self.remedy = kind, what, where, remedy


class CulpritWarning(UserWarning):
    """What this package warns of: of a measurement that decides nothing, or of what could not be seen, written or read. It is never an error of the program that is measured."""
