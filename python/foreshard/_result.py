"""What all results have in common."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import os
import pathlib
import tempfile
import types
import typing
from typing import Any, ClassVar, Optional, TypeVar

from ._card import card
from ._run import Answer, Message, PathLike, options, run

R = TypeVar("R", bound="Result")


class Picture:
    """A picture, which notebooks show.

    Attributes:
        svg: Its text, as SVG. Each mark has its exact value in the attribute `data-value`.
    """

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, file: PathLike) -> None:
        """Writes the picture into a file.

        Args:
            file: Its name, such as "step.svg".

        Raises:
            OSError: The file cannot be written.
        """
        pathlib.Path(os.fspath(file)).write_text(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg


class Result:
    """The result of a command. Its fields are the keys of the command's JSON."""

    #: The name of the JSON's schema: "foreshard.prediction/1".
    SCHEMA: ClassVar[str]
    #: The list that frame() shows; None: the result is one row.
    ROWS: ClassVar[str | None] = None

    @property
    def code(self) -> int:
        """The exit code of the command (see Answer)."""
        return self._answer().code

    @property
    def messages(self) -> list[Message]:
        """Remarks that the command made."""
        return self._answer().messages

    def json(self) -> str:
        """The JSON that the command prints, byte for byte."""
        return self._answer().text

    def frame(self) -> Any:
        """The result as a pandas.DataFrame; needs pandas. Keys of nested objects are joined by dots.

        Raises:
            ImportError: pandas is not installed.
        """
        pandas = importlib.import_module("pandas")
        told = json.loads(self.json())
        rows = told[self.ROWS] if self.ROWS else [told]
        return pandas.json_normalize(rows)

    def picture(self, kind: Optional[str] = None) -> Picture:
        """The result as a picture, by the command `plot`.

        Args:
            kind: "waterfall", "memory" or "sensitivity" of a prediction, "pareto" or "memory" of a
                search, "pareto" of a sweep, "curve" of collectives; None: the first one of these.

        Raises:
            Error: Results of this class have no such picture.
        """
        return Picture(run("plot", "-", *options(kind=kind), input=self.json()).text)

    def report(self, file: PathLike) -> None:
        """Writes the result as one HTML page for a browser, by the command `report`.

        Args:
            file: The page's file, such as "step.html".

        Raises:
            Error: Results of this class have no page.
            OSError: The file cannot be written.
        """
        write_page([self.json()], file)

    def _repr_html_(self) -> str:
        return card(type(self).__name__, self.ROWS, json.loads(self.json()))

    def _answer(self) -> Answer:
        answer: Answer = self.__dict__["_from"]
        return answer


def write_page(texts: list[str], file: PathLike) -> None:
    """Writes the page of results, given by their JSON."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / f"{i + 1}.json" for i in range(len(texts))]
        for path, text in zip(paths, texts):
            path.write_text(text, encoding="utf-8")
        run("report", *paths, "-o", os.path.abspath(os.fspath(file)))


def result_of(kind: type[R], answer: Answer) -> R:
    """The result in the JSON of an answer."""
    result: R = _object(kind, json.loads(answer.text))
    result.__dict__["_from"] = answer  # A frozen dataclass has no other fields.
    return result


@functools.lru_cache(maxsize=None)
def _fields(kind: type) -> dict[str, tuple[str, Any]]:
    """For each key of the JSON its field and the type of that."""
    hints = typing.get_type_hints(kind)
    return {
        one.metadata.get("key", one.name): (one.name, hints[one.name])
        for one in dataclasses.fields(kind)
    }


def _object(kind: type, told: dict[str, Any]) -> Any:
    fields = _fields(kind)
    return kind(
        **{fields[key][0]: _value(fields[key][1], one) for key, one in told.items() if key in fields}
    )


def _value(kind: Any, told: Any) -> Any:
    if told is None or kind is Any:
        return told
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        for one in typing.get_args(kind):
            if dataclasses.is_dataclass(one) and isinstance(told, dict):
                return _object(typing.cast(type, one), told)
            if typing.get_origin(one) in (list, dict) and isinstance(told, (list, dict)):
                return _value(one, told)
        return told
    if origin is list:
        (of,) = typing.get_args(kind)
        return [_value(of, one) for one in told]
    if origin is dict:
        of = typing.get_args(kind)[1]
        return {key: _value(of, one) for key, one in told.items()}
    if dataclasses.is_dataclass(kind):
        return _object(typing.cast(type, kind), told)
    return told
