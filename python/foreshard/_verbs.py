"""Questions that are not of a single study."""

from __future__ import annotations

import json
import pathlib
import tempfile
from typing import Any, Mapping, Optional, Union

from . import results
from ._result import Result, result_of, write_page
from ._run import PathLike, Progress, options, run, settings
from ._study import Part, Study, _json


def _source(source: Part) -> tuple[PathLike, str]:
    """A file's name, and what the name "-" reads."""
    if isinstance(source, Mapping):
        return "-", json.dumps(source)
    if isinstance(source, str) and "\n" in source:
        return "-", source
    return source, ""


def _part(part: Part) -> list[str]:
    """A part of a study as an argument."""
    return options(part=part)[1:]


def sweep(
    source: Part,
    *,
    results_file: Optional[PathLike] = None,
    threads: Optional[int] = None,
    shard: Optional[str] = None,
    budget: Optional[str] = None,
    progress: Progress = False,
) -> results.Sweep:
    """Compares a grid of clusters, models and strategies: time, money, energy.

    Ctrl-C gives the points that are done.

    Args:
        source: A file (schema sweep), its text, a dict with its keys, or a name of the catalogue.
        results_file: Keep each point in this file as soon as it is done, and compute none that is
            there already.
        threads: Points at the same time.
        shard: "2/8": only the second of eight parts.
        budget: Begin no point after this time, such as "60s".
        progress: True writes a line to stderr; a function is called with (what, done, total).

    Raises:
        Error: The sweep or one of its studies has a fault.
    """
    name, text = _source(source)
    given = options(results=results_file, threads=threads, shard=shard, budget=budget)
    return result_of(
        results.Sweep, _json("study", name, *given, input=text, progress=progress)
    )


def compare(
    a: Union[Study, results.Prediction], b: Union[Study, results.Prediction]
) -> results.SideBySide:
    """Puts two predictions side by side: why one step is faster than the other.

    Study.compare() can also find the value from which the other one is better.

    Args:
        a, b: Studies, which are predicted, or predictions.

    Raises:
        Error: A study has a fault.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / name for name in ("a.json", "b.json")]
        for path, one in zip(paths, (a, b)):
            path.write_text((one.predict() if isinstance(one, Study) else one).json())
        return result_of(results.SideBySide, _json("compare", *paths))


def report(
    *given: Union[Study, Result], file: PathLike, advice: bool = True, progress: Progress = False
) -> None:
    """Writes one HTML page for a browser of several studies and results.

    Args:
        given: Studies, which are simulated, and results.
        file: The page's file, such as "step.html".
        advice, progress: As of Study.report().

    Raises:
        Error: A study has a fault, or a result has no page.
        OSError: The file cannot be written.
    """
    texts: list[str] = []
    for one in given:
        texts += one._pages(advice, progress) if isinstance(one, Study) else [one.json()]
    write_page(texts, file)


def init(
    *,
    model: PathLike,
    cluster: PathLike,
    gpus: Optional[int] = None,
    batch: Optional[Union[int, str]] = None,
    train: Optional[str] = None,
) -> str:
    """A first study, as YAML, with the fastest strategy of a small search: Study(init(...)).

    Args:
        model: A name of the catalogue, a file, or a folder of Hugging Face.
        cluster: A cluster, a node or a device of the catalogue, or a file.
        gpus: How many GPUs; None: those of the cluster, or of one node.
        batch: Global batch of a step in sequences, or "4M tokens".
        train: Length of the whole training: "2T tokens".

    Raises:
        Error: A name is not known, or nothing fits.
    """
    given = {"model": model, "cluster": cluster, "gpus": gpus, "batch": batch, "train": train}
    return run("init", *options(**given)).text


def elastic(
    source: Part, *, threads: Optional[int] = None, progress: Progress = False
) -> results.Elastic:
    """What a run on a machine that fails comes to, by what is done about it.

    Args:
        source: A file (schema elastic), its text, a dict with its keys, or a name of the catalogue.
        threads, progress: As of sweep().

    Raises:
        Error: The file has a fault.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    name, text = _source(source)
    answer = _json("elastic", name, *options(threads=threads), input=text, progress=progress)
    return result_of(results.Elastic, answer)


def reshard(
    tensor: str,
    *,
    from_: str,
    to: str,
    cluster: Part,
    set: Optional[Mapping[str, Any]] = None,
    plans: Optional[int] = None,
    simulate: Optional[int] = None,
) -> results.Reshard:
    """The fastest plan that is known to move a tensor from one layout to another.

    Args:
        tensor: Type and shape: "bf16[8192, 53248]".
        from_: Layout: mesh axes, ranks, axes per dimension: "tp=8 @0-7 [-, tp]".
        to: Layout, in the same form.
        cluster: A name of the catalogue, a file, YAML in braces or a dict.
        set: Values by their path, below "cluster" or "communication".
        plans: Number of plans to compare.
        simulate: Number of plans to simulate.

    Raises:
        Error: A layout does not suit the tensor or the cluster.
    """
    given = {"tensor": tensor, "from": from_, "to": to, "cluster": cluster}
    words = options(**given, plans=plans, simulate=simulate) + settings(set)
    return result_of(results.Reshard, _json("reshard", *words))


def reshard_strategy(
    before: Part,
    after: Part,
    *,
    model: Part,
    cluster: Part,
    down: Optional[str] = None,
    set: Optional[Mapping[str, Any]] = None,
) -> results.ReshardStrategy:
    """How the parameters of a model move from one strategy to another.

    Args:
        before, after: Strategies: names of the catalogue, files, YAML in braces or dicts.
        model, cluster: As of Study.
        down: Ranks that are lost: "15" or "8-15".
        set: Values by their path.

    Raises:
        Error: A part has a fault, or a parameter is lost with these ranks.
    """
    given = {"from_strategy": before, "to_strategy": after, "model": model, "cluster": cluster}
    words = options(**given, down=down) + settings(set)
    return result_of(results.ReshardStrategy, _json("reshard", *words))


def collectives(
    cluster: Part,
    *,
    op: str = "all_reduce",
    ranks: Optional[str] = None,
    sizes: Optional[str] = None,
    step: Optional[float] = None,
    algorithm: Optional[str] = None,
    protocol: Optional[str] = None,
    channels: Optional[int] = None,
    tuner: Optional[str] = None,
    communication: Optional[Part] = None,
    all: bool = False,
    set: Optional[Mapping[str, Any]] = None,
) -> results.Collectives:
    """Times of a collective by its size: closed forms, the simulation and what NCCL would choose.

    Args:
        cluster: A name of the catalogue, a file, YAML in braces or a dict.
        op: The operation.
        ranks: Devices that take part: "0-15"; None: all.
        sizes: "1KiB:1GiB".
        step: Factor from one size to the next.
        algorithm, protocol, channels, tuner, communication: What is otherwise chosen.
        all: Every form, including those that NCCL does not have.
        set: Values of the cluster by their path.

    Raises:
        Error: The cluster has a fault, or the collective no such form.
    """
    given = dict(locals())
    words = _part(given.pop("cluster")) + settings(given.pop("set")) + options(**given)
    return result_of(results.Collectives, _json("topology", "collectives", *words))


def topology(cluster: Part, *, set: Optional[Mapping[str, Any]] = None) -> results.Topology:
    """Devices, links, bisection and routes of a cluster.

    Args:
        cluster, set: As of collectives().

    Raises:
        Error: The cluster has a fault.
    """
    answer = _json("topology", "show", *_part(cluster), *settings(set))
    return result_of(results.Topology, answer)


def check_topology(cluster: Part, *, set: Optional[Mapping[str, Any]] = None) -> results.Findings:
    """What is implausible about a cluster.

    Args:
        cluster, set: As of collectives().

    Raises:
        Error: The cluster has a fault.
    """
    answer = _json("topology", "check", *_part(cluster), *settings(set))
    return result_of(results.Findings, answer)


def import_topology(file: PathLike, **given: Any) -> str:
    """A cluster, as YAML, from what another tool printed of a machine (nvidia-smi topo -m, ...).

    Args:
        file: What the tool printed.
        given: Options of `foreshard topology import`: node="dgx-h100" is --node dgx-h100.

    Raises:
        Error: The text is of no known tool, or has a fault.
    """
    return run("topology", "import", file, *options(**given)).text


def import_launch(
    file: PathLike,
    *,
    part: str = "strategy",
    devices: Optional[int] = None,
    cluster: Optional[Part] = None,
    set: Optional[Mapping[str, Any]] = None,
) -> str:
    """A strategy, as YAML, from another framework's launch file.

    Args:
        file: Options of Megatron-LM (.sh), DeepSpeed JSON, torchtitan TOML, accelerate or NeMo YAML.
        part: "strategy", "model" or "study".
        devices: Number of devices, unless a cluster is given.
        cluster: As of Study.
        set: Values by their path.

    Raises:
        Error: The file has a fault, or says what no strategy has.
    """
    words = options(part=part, devices=devices, cluster=cluster) + settings(set)
    return run("import", file, *words).text


def calibrate(*words: PathLike) -> str:
    """Fits numbers to measurements in files.

    Args:
        words: Words of `foreshard calibrate`.

    Raises:
        Error: A file has a fault, or too few measurements.
    """
    return run("calibrate", *words).text


def catalogue() -> results.Catalog:
    """The names of the catalogue, by kind.

    Raises:
        Error: There is no catalogue.
    """
    return result_of(results.Catalog, _json("catalog"))


def operators() -> results.Operators:
    """The operators that graphs may have.

    Raises:
        Error: There is no catalogue.
    """
    return result_of(results.Operators, _json("catalog", "operators"))


def schedules() -> results.Schedules:
    """The schedules of pipelines.

    Raises:
        Error: There is no catalogue.
    """
    return result_of(results.Schedules, _json("catalog", "schedules"))


def entry(name: str) -> str:
    """An entry of the catalogue as YAML, defaults and sources included.

    Args:
        name: Its name: "H100-SXM".

    Raises:
        Error: There is no such name.
    """
    return run("catalog", "show", name).text


def check(file: PathLike, *, kind: Optional[str] = None) -> str:
    """What is understood of a file, defaults included, as YAML.

    Args:
        file: A file of any kind.
        kind: The kind, where the file does not tell: "cluster", "model", ...

    Raises:
        Error: The file has a fault.
    """
    return run("check", file, *options(kind=kind)).text


def explain(found: PathLike, *, why_not: Optional[str] = None) -> results.Explanation:
    """Says why a search chose what it chose.

    Args:
        found: A file with the JSON of a search.
        why_not: Strategies of which to say what ruled them out: "tp8 pp4 zero1".

    Raises:
        Error: The file is no result of a search, or its study cannot be read again.
    """
    return result_of(results.Explanation, _json("explain", found, *options(why_not=why_not)))


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a kind of file or of a result.

    Args:
        kind: A kind of file ("study") or the schema of a result ("foreshard.prediction/1").

    Raises:
        Error: There is no such kind.
    """
    told: dict[str, Any] = json.loads(run("schema", kind).text)
    return told


def build() -> results.Version:
    """What this build of foreshard is.

    Raises:
        Error: There is no catalogue.
    """
    return result_of(results.Version, _json("version"))


__all__ = [
    "build",
    "calibrate",
    "catalogue",
    "check",
    "check_topology",
    "collectives",
    "compare",
    "elastic",
    "entry",
    "explain",
    "import_launch",
    "import_topology",
    "init",
    "operators",
    "report",
    "reshard",
    "reshard_strategy",
    "schedules",
    "schema",
    "sweep",
    "topology",
]
