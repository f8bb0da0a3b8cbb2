"""What `foreshard accuracy` says of the tables of measurements beside the project, and quantiles of it."""

import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared/data"
PROGRAM = ROOT / "build/release/bin/foreshard"
KERNELS = ("attention_rates.csv", "norm_rates.csv", "gemm_b300_gb200_gb300.csv")  # of facts/


def tables(kind):
    """The files of a kind: training, collectives, kernels."""
    files = sorted((DATA / kind).glob("*.csv"))
    if kind == "kernels":
        files += [DATA / "facts" / name for name in KERNELS if (DATA / "facts" / name).exists()]
    return files


def need_data(tool):
    if not DATA.exists():
        print(f"{tool}: no measurements at {DATA}; nothing to do")
        sys.exit(0)


def accuracy(files, how, *more, program=None, configs=None):
    environment = dict(os.environ, **({"FORESHARD_CONFIGS": str(configs)} if configs else {}))
    command = [str(program or PROGRAM), "accuracy", *map(str, files), "--format", how, *more]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command[:3])} ... failed ({run.returncode}):\n{run.stderr}")
    return run.stdout


def rows(files, **options):
    """The predicted rows with their columns; measured / predicted is their `ratio`."""
    found = []
    for row in csv.DictReader(io.StringIO(accuracy(files, "csv", **options))):
        if row["status"] == "ok" and row["predicted"] and row["measured"]:
            row["ratio"] = float(row["measured"]) / float(row["predicted"])
            found.append(row)
    return found


def report(files, *more, rows=True, **options):
    return json.loads(accuracy(files, "json", *([] if rows else ["--summary"]), *more, **options))


def quantile(pairs, share):
    """Of (value, weight): the least value with at least `share` of the weight at or below it."""
    ordered = sorted(pairs)
    total = sum(weight for _, weight in ordered)
    below = 0.0
    for value, weight in ordered:
        below += weight
        if below >= share * total * (1 - 1e-12):
            return value
    return ordered[-1][0]


def equally(rows_by_group):
    """(ratio, weight) of rows, each group with a weight of 1 in all."""
    return [(row["ratio"], 1 / len(members)) for members in rows_by_group.values() for row in members]


def grouped(found, key):
    groups = {}
    for row in found:
        groups.setdefault(key(row), []).append(row)
    return groups


class Overlay:
    """A copy of the catalogue in which something stands otherwise."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="foreshard-errors-"))
        self.configs = self.folder / "configs"
        shutil.copytree(ROOT / "configs", self.configs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def lend(self, device, efficiency):
        file = self.configs / f"devices/{device}.yaml"
        text, count = re.subn(r"(?m)^efficiency: .*$", f"efficiency: {efficiency}", file.read_text())
        if count != 1:
            sys.exit(f"{file.name} has no line 'efficiency:'")
        file.write_text(text)

    def replace_forms(self, generation, instead):
        """Takes away the forms of a generation; it gets those of `instead`, or the common ones."""
        file = self.configs / "communication/nccl.yaml"
        kept = []
        for item in re.split(r"(?m)^(?=  - )", file.read_text()):
            if f"architectures: [{generation}]" in item:
                item = "".join(re.findall(r"(?m)^(?!  ).*\n", item))  # what follows the list
            elif instead:
                item = item.replace(f"architectures: [{instead}]", f"architectures: [{instead}, {generation}]")
            kept.append(item)
        file.write_text("".join(kept))
