"""Runs commands of foreshard in this process."""

from __future__ import annotations

import json
import os
import pathlib
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from . import _core
from ._errors import Error, InternalError

PathLike = Union[str, "os.PathLike[str]"]
#: Called with what is being done, how much of it is done, and its total (0: unknown).
Progress = Union[bool, Callable[[str, int, int], object]]

_INTERNAL_ERROR = 1
_BAD_INPUT = 2


@dataclass(frozen=True)
class Message:
    """A remark or a fault, as the program prints it to stderr."""

    is_error: bool
    text: str
    file: str = ""
    line: int = 0
    column: int = 0
    remedy: str = ""


@dataclass(frozen=True)
class Answer:
    """What a command answers.

    Attributes:
        code: The exit code of the command: 0 done, 3 nothing fits or a goal is not met, 4 a limit
            that was asked for is exceeded, 5 partial.
        text: What the command prints.
        messages: Remarks that it makes.
    """

    code: int
    text: str
    messages: list[Message] = field(default_factory=list)


def catalogue_folder() -> str:
    """The folder of the catalogue: $FORESHARD_CONFIGS, or the one installed with this package."""
    named = os.environ.get("FORESHARD_CONFIGS", "")
    if named:
        return named
    package = pathlib.Path(__file__).resolve().parent
    places = [package / "configs"]
    places += [parent / "share" / "foreshard" / "configs" for parent in package.parents]
    for place in places:
        if place.is_dir():
            return str(place)
    return ""


def _shown(what: str, done: int, total: int) -> None:
    sys.stderr.write(f"\r{what} {done}{f'/{total}' if total else ''} ")
    sys.stderr.flush()


def run(
    *words: PathLike, input: str = "", progress: Progress = False, catalogue: str = ""
) -> Answer:
    """Runs any command, without quotes: run("topology", "show", "two-dgx-h100").

    Args:
        words: The words of the command line, without the program's name.
        input: What the file name "-" reads.
        progress: True writes a line to stderr; a function is called instead.
        catalogue: Folder of the catalogue; empty: catalogue_folder().

    Raises:
        Error: The command cannot answer.
        InternalError: It has a bug.
        KeyboardInterrupt: Ctrl-C was pressed, and the command had no results to keep. A search, a
            sweep and the like return what they have so far, and what is not done is said there.
    """
    told = progress if callable(progress) else _shown if progress else None
    line = [os.fspath(word) for word in words]
    folder = catalogue or catalogue_folder()
    if folder and "--configs" not in line and line[:1] != ["help"]:  # which must come first
        line[:0] = ["--configs", folder]
    code, text, said = _core.run(line, input, told)
    if told is _shown:
        sys.stderr.write("\r\x1b[K")
    messages = [Message(*one) for one in said]
    faults = [one for one in messages if one.is_error]
    if code == _INTERNAL_ERROR:
        raise InternalError("\n".join(one.text for one in faults))
    if code == _BAD_INPUT or faults:
        first = faults[0] if faults else Message(True, f"exit code {code}")
        raise Error(
            "\n".join(one.text for one in faults),
            first.file,
            first.line,
            first.column,
            first.remedy,
        )
    return Answer(code, text, messages)


def yaml(value: Any) -> str:
    """A value as YAML on one line; text is taken as YAML already."""
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    return value if isinstance(value, str) else json.dumps(value)


def settings(values: Optional[Mapping[str, Any]], option: str = "--set") -> list[str]:
    """{"strategy.tensor_parallel": 4} as options."""
    words: list[str] = []
    for key, value in (values or {}).items():
        words += [option, f"{key}={yaml(value)}"]
    return words


def options(**given: Any) -> list[str]:
    """Options of the command line: top=3 is --top 3, no_fold=True is --no-fold, None is nothing."""
    words: list[str] = []
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, list):
            for one in value:
                words += [option, yaml(one)]
        else:
            words += [option, yaml(value)]
    return words
