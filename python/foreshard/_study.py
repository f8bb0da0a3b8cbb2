"""Studies: a model, divided by a strategy over the devices of a cluster."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import tempfile
from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

from . import results
from ._errors import Error
from ._result import result_of, write_page
from ._run import Answer, PathLike, Progress, options, run, settings, yaml

#: A name of the catalogue, a file, YAML in braces, or a dict of the keys of such a file.
Part = Union[str, "os.PathLike[str]", Mapping[str, Any]]

_PARTS = ("cluster", "model", "strategy", "communication")
_LAUNCH_FILES = (".sh", ".toml")


def _json(*words: PathLike, **how: Any) -> Answer:
    return run(*words, "--format", "json", **how)


def _given(names: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a method, from its locals()."""
    return {name: value for name, value in names.items() if name != "self"}


class Study:
    """A question: a model, divided by a strategy over the devices of a cluster.

    Nothing is read before a method asks; a study does not change.

    Args:
        source: A name of the catalogue, a file, the text of a file (with line ends), a dict with
            the keys of a file, or a launch file of another framework (.sh, .toml). Not needed if
            cluster, model and strategy are given.
        cluster, model, strategy, communication: Parts that take the place of the source's: a name
            of the catalogue, a file, YAML in braces, or a dict. A model may be a folder of Hugging
            Face or an .onnx file.
        launch: A launch file of another framework, for the strategy (DeepSpeed JSON, ...).
        megatron: Options of Megatron-LM as one text, for the strategy.
        measured: A CSV file of measured times of kernels and collectives.
        set: Values by their path, {"strategy.tensor_parallel": 4}; the last word.
        catalogue: Folder of the catalogue; empty: $FORESHARD_CONFIGS or the package's own.
    """

    def __init__(
        self,
        source: Optional[Part] = None,
        *,
        cluster: Optional[Part] = None,
        model: Optional[Part] = None,
        strategy: Optional[Part] = None,
        communication: Optional[Part] = None,
        launch: Optional[PathLike] = None,
        megatron: Optional[str] = None,
        measured: Optional[PathLike] = None,
        set: Optional[Mapping[str, Any]] = None,
        catalogue: PathLike = "",
    ) -> None:
        parts: dict[str, Any] = {
            "cluster": cluster,
            "model": model,
            "strategy": strategy,
            "communication": communication,
        }
        values: dict[str, Any] = {}
        self._name: Optional[str] = None
        self._input = ""
        if isinstance(source, Mapping):
            for key, value in source.items():
                if key in _PARTS:
                    parts[key] = value if parts[key] is None else parts[key]
                else:
                    values[key] = value
        elif source is not None:
            text = os.fspath(source)
            if text.endswith(_LAUNCH_FILES) and "\n" not in text:
                launch = launch or text
            elif "\n" in text:
                self._name, self._input = "-", text
            else:
                self._name = text
        self._catalogue = os.fspath(catalogue)
        self._set: dict[str, Any] = {**values, **(set or {})}
        self._options = options(
            **parts, **{"import": launch}, megatron=megatron, measured=measured
        )

    def words(self) -> list[str]:
        """The study as words of the command line; a study given as text is "-" there."""
        return ([self._name] if self._name else []) + self._options + settings(self._set)

    def set(self, *values: Mapping[str, Any], **more: Any) -> "Study":
        """The study with other values: set({"strategy.tensor_parallel": 4}).

        A keyword is a path whose dots are double underscores: set(strategy__tensor_parallel=4).

        Args:
            values: Values by their path. Those with a unit are text: "400 Gbit/s".
            more: The same as keywords.
        """
        changed = Study()
        changed.__dict__.update(self.__dict__)
        changed._set = dict(self._set)
        for one in values:
            changed._set.update(one)
        changed._set.update({key.replace("__", "."): value for key, value in more.items()})
        return changed

    def __repr__(self) -> str:
        return f"Study({' '.join(self.words())})"

    def predict(
        self,
        *,
        sensitivity: bool = False,
        draws: Optional[int] = None,
        granularity: Optional[str] = None,
        fold: bool = True,
        trace: Optional[PathLike] = None,
        engine: str = "fluid",
    ) -> results.Prediction:
        """Predicts a step: its time in seconds, its memory in bytes, its cost, and where all go.

        What does not fit in memory is a result, too, whose `feasible` is False.

        Args:
            sensitivity: Also tell how much shorter the step gets with each part faster.
            draws: Of a graph with conditions: steps whose branches are drawn anew.
            granularity: "flat" or "stepwise" (each message of a collective is a flow).
            fold: Simulate one device of each class of equal ones, not all.
            trace: File (.pftrace, .json) for a time line to view in ui.perfetto.dev.
            engine: "fluid". ("simgrid" needs another process: the command foreshard has it.)

        Raises:
            Error: The study has a fault.
        """
        given = _given(locals())
        given["no_fold"] = not given.pop("fold")
        return result_of(results.Prediction, self._json("simulate", given))

    def search(
        self,
        *,
        space: Optional[Part] = None,
        level: Optional[int] = None,
        top: Optional[int] = None,
        simulate: Optional[int] = None,
        certify: Optional[int] = None,
        front: Optional[int] = None,
        threads: Optional[int] = None,
        budget: Optional[str] = None,
        any_framework: bool = False,
        why_not: Optional[str] = None,
        progress: Progress = False,
    ) -> "Found":
        """Searches the fastest strategies that fit. Ctrl-C gives the best so far.

        Args:
            space: Which values to try: a file, YAML in braces or a dict.
            level: How much to try: 0 (little) to 3 (everything).
            top: Number of strategies in the result.
            simulate: Number of strategies to simulate first, the best by estimate.
            certify: Most further simulations, of strategies that might still be faster.
            front: Most further simulations, of strategies that trade time for memory or money.
            threads: Simulations at the same time.
            budget: Give the best so far after this time, such as "60s".
            any_framework: Also try what the study's framework has no options for.
            why_not: Say what ruled such a strategy out: "tp8 pp4 zero1".
            progress: True writes a line to stderr; a function is called with (what, done, total).

        Raises:
            Error: The study has a fault, or is of a graph (search_graph).
        """
        answer = self._json("search", _given(locals()))
        if json.loads(answer.text)["schema"] != results.Search.SCHEMA:
            raise Error("search: the study is of a graph; search_graph() searches it")
        found = result_of(Found, answer)
        found.__dict__["_study"] = self
        return found

    def advise(
        self,
        *,
        top: Optional[int] = None,
        threads: Optional[int] = None,
        progress: Progress = False,
    ) -> results.Advice:
        """The best single changes to this study, each simulated. Ctrl-C gives the best so far.

        study.set(advice.changes[0].settings) is the study with the first of them.

        Args:
            top: Number of changes, and of changes of hardware.
            threads: Simulations at the same time.
            progress: As of search().

        Raises:
            Error: The study has a fault, or no step of its kind can be advised on.
        """
        return result_of(results.Advice, self._json("advise", _given(locals())))

    def report(self, file: PathLike, *, advice: bool = True, progress: Progress = False) -> None:
        """Writes one HTML page for a browser: the step with its time line, and what would help.

        Args:
            file: The page's file, such as "step.html".
            advice: Also simulate the best single changes, as advise() does.
            progress: As of search().

        Raises:
            Error: The study has a fault.
            OSError: The file cannot be written.
        """
        write_page(self._pages(advice, progress), file)

    def _pages(self, advice: bool, progress: Progress = False) -> list[str]:
        """The JSON of what stands on the study's page."""
        with tempfile.TemporaryDirectory() as folder:
            step = pathlib.Path(folder) / "step.fsr"
            self._run("simulate", "--bundle", str(step))
            texts = [gzip.decompress(step.read_bytes()).decode()]
        if advice:
            texts.append(self.advise(progress=progress).json())
        return texts

    def search_graph(
        self,
        *,
        rules: Optional[PathLike] = None,
        level: Optional[int] = None,
        top: Optional[int] = None,
        simulate: Optional[int] = None,
        threads: Optional[int] = None,
        progress: Progress = False,
    ) -> results.GraphSearch:
        """Searches how to split a graph, operator by operator.

        Args:
            rules: A file of rules to try beside the library's.
            level, top, simulate, threads, progress: As of search().

        Raises:
            Error: The study has a fault, or is of a model (search).
        """
        answer = self._json("search", _given(locals()))
        if json.loads(answer.text)["schema"] != results.GraphSearch.SCHEMA:
            raise Error("search_graph: the study is of a model; search() searches it")
        return result_of(results.GraphSearch, answer)

    def compare(
        self,
        other: Optional[PathLike] = None,
        *,
        set_b: Optional[Mapping[str, Any]] = None,
        break_even: Optional[str] = None,
        by: Optional[str] = None,
    ) -> results.SideBySide:
        """Puts the prediction of this study beside that of another: why one is faster.

        Args:
            other: Another study, a file or a name of the catalogue; None: the same one.
            set_b: Values of the other one, as of set().
            break_even: The value from which the other one is better: "cluster.rent=1..5 USD/h".
            by: What is compared there: "time" or "usd".

        Raises:
            Error: A study has a fault, or no such value is between the limits.
        """
        words = settings(set_b, "--set-b")
        given = {"break_even": break_even, "by": by}
        return result_of(results.SideBySide, self._json("compare", given, *words, other=other))

    def compare_measurement(
        self, measurement: PathLike, *, max_error: Optional[str] = None
    ) -> results.Comparison:
        """Compares the prediction with the measurement of foreshard-replay, task by task.

        Args:
            measurement: The file that foreshard-replay wrote.
            max_error: The result's `code` is 4 if the step is further off than this: "15%".

        Raises:
            Error: The study has a fault, or the file is of another study.
        """
        answer = self._json("compare", {"max_error": max_error}, other=measurement)
        return result_of(results.Comparison, answer)

    def replan(
        self,
        *,
        down: Sequence[str] = (),
        after: Optional[Mapping[str, Any]] = None,
        keep: bool = False,
        detection: Optional[str] = None,
        restart: Optional[str] = None,
        storage: Optional[str] = None,
        space: Optional[Part] = None,
        level: Optional[int] = None,
        simulate: Optional[int] = None,
        certify: Optional[int] = None,
        threads: Optional[int] = None,
        progress: Progress = False,
    ) -> results.Replan:
        """The new strategy when devices fail, go or come, and what the change takes, in seconds.

        Args:
            down: Devices or nodes that fail: ["node3"].
            after: Values after the change, as of set(): {"cluster.nodes": 16}.
            keep: Keep the old strategy where it still fits.
            detection: From a failure until somebody acts: "5min".
            restart: From then on until the framework runs again: "5min".
            storage: Rate at which a checkpoint is read: "100 GB/s".
            space, level, simulate, certify, threads, progress: As of search().

        Raises:
            Error: The study has a fault, or nothing changes.
        """
        given = _given(locals())
        words = settings(given.pop("after"), "--set-after")
        given["down"] = list(down)
        return result_of(results.Replan, self._json("replan", given, *words))

    def export(self, framework: str) -> str:
        """The strategy as another framework has it.

        Args:
            framework: "megatron", "megatron-bridge", "nemo", "deepspeed", "torchtitan" or
                "accelerate".

        Raises:
            Error: The study has a fault, or the framework has no such strategy.
        """
        return self._run("export", "--as", framework).text

    def program(self) -> results.Program:
        """What each rank does in a step.

        Raises:
            Error: The study has a fault.
        """
        return result_of(results.Program, self._run("export", "--program", "-"))

    def _run(
        self,
        command: str,
        *more: str,
        other: Optional[PathLike] = None,
        progress: Progress = False,
    ) -> Answer:
        """A command about this study, and about `other` where it takes two."""
        words = self.words()
        if other is not None:
            words.insert(1 if self._name else 0, os.fspath(other))
        return run(
            command,
            *words,
            *more,
            input=self._input,
            progress=progress,
            catalogue=self._catalogue,
        )

    def _json(self, command: str, given: Mapping[str, Any], *more: str, **how: Any) -> Answer:
        """The same in JSON, with options of a method's own names."""
        kept = dict(given)
        progress = kept.pop("progress", False)
        return self._run(
            command, *more, *options(**kept), "--format", "json", progress=progress, **how
        )


@dataclass(frozen=True)
class FoundStrategy:
    """A strategy that a search found.

    Attributes:
        row: What the search says of it.
        study: The study with this strategy.
    """

    row: results.ListedStrategy
    study: Study


class Found(results.Search):
    """The result of a search, and a list of the strategies that it found, the best first."""

    def __len__(self) -> int:
        return len(self.best)

    def __getitem__(self, index: int) -> FoundStrategy:
        row = json.loads(self.json())["best"][index]
        values = {f"strategy.{key}": value for key, value in row["strategy"].items()}
        if row["use"]:
            values["use"] = row["use"]
        study: Study = self.__dict__["_study"]
        return FoundStrategy(self.best[index], study.set(values))

    def __iter__(self) -> Iterator[FoundStrategy]:
        return (self[index] for index in range(len(self)))

    def explain(self, why_not: Optional[str] = None) -> results.Explanation:
        """Says why the first strategy is better than the second, and what ruled others out.

        Args:
            why_not: Such strategies: "tp8 pp4 zero1".

        Raises:
            Error: The study was given as the text of a file, which cannot be read again.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "found.json"
            path.write_text(self.json())
            study: Study = self.__dict__["_study"]
            answer = _json(
                "explain", path, *options(why_not=why_not), catalogue=study._catalogue
            )
        return result_of(results.Explanation, answer)
