"""Exceptions of foreshard."""

from __future__ import annotations


class Error(Exception):
    """A question that cannot be answered: str() says what is wrong, where, and what to do.

    Attributes:
        file: File with the first fault; empty if it is in none.
        line: Its line, from 1; 0 if there is none.
        column: Its column, from 1; 0 if there is none.
        remedy: What to write instead; empty if nothing is known.
    """

    def __init__(
        self, message: str, file: str = "", line: int = 0, column: int = 0, remedy: str = ""
    ) -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        self.column = column
        self.remedy = remedy


class InternalError(Exception):
    """A check of foreshard's own failed: a bug. The interpreter goes on."""
