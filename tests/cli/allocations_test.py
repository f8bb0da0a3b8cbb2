#!/usr/bin/env python3
"""Commands whose n-th allocation fails: each ends with the one message about memory and exit code 2, or as it
does otherwise, and leaves either its whole output or none. fail_allocation.cc lets allocations fail.

    allocations_test.py PROGRAM SOURCE BUILD LIBRARY [FIRST DRAWN]

of each command the first FIRST allocations (20) and DRAWN later ones (12)
"""

import concurrent.futures
import os
import pathlib
import random
import subprocess
import sys
import tempfile

PROGRAM, LIBRARY = sys.argv[1], sys.argv[4]
FIRST, DRAWN = (int(word) for word in (sys.argv[5:] or (20, 12)))
STUDY = """\
cluster: {name: box, node: dgx-a100-80gb}
model: {name: small, layers: 4, hidden: 256, heads: 4, vocabulary: 1000, sequence: 256}
strategy: {tensor_parallel: 2, data_parallel: 4, global_batch: 16, framework: megatron-lm}
"""
SWEEP = "study: study.yaml\naxes: [{key: strategy.micro_batch, values: [1, 2]}]\n"
# {} is a folder of the run's own.
COMMANDS = (
    "simulate study.yaml --format json -o {}/out.json",
    "simulate study.yaml --trace {}/trace.json -o {}/out.txt",
    "search study.yaml --simulate 2 --threads 2 --format json -o {}/out.json",
    "study sweep.yaml --threads 2 --results {}/kept.db -o {}/out.txt",
    "explain found.json -o {}/out.txt",
    "check study.yaml -o {}/out.yaml",
    "reshard --tensor bf16[8192,8192] --from 'x=8 [x, -]' --to 'x=8 [-, x]' --cluster two-dgx-h100 -o {}/out.txt",
    "export study.yaml --program {}/step.json",
    "topology show two-dgx-h100 -o {}/out.txt",
    "compare study.yaml other.yaml -o {}/out.txt",
)
MESSAGE = "error: out of memory"


def run(folder, command, number=None):
    with tempfile.TemporaryDirectory() as own:
        own = pathlib.Path(own)
        count = own / "count"
        environment = {**os.environ, "LD_PRELOAD": LIBRARY, "FAIL_ALLOCATION_COUNT": str(count)}
        if number is not None:
            environment["FAIL_ALLOCATION"] = number
        (own / "out").mkdir()
        line = f"'{PROGRAM}' {command.replace('{}', str(own / 'out'))}"
        done = subprocess.run(["bash", "-c", "ulimit -c 0; exec " + line], cwd=folder, capture_output=True,
                              text=True, env=environment, timeout=120)
        left = {path.name: path.read_bytes() for path in sorted((own / "out").iterdir())}
        return done, left, int(count.read_text()) if count.exists() else 0


def main():
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "study.yaml").write_text(STUDY)
        (folder / "other.yaml").write_text(STUDY.replace("layers: 4", "layers: 8"))
        (folder / "sweep.yaml").write_text(SWEEP)
        found, _, _ = run(folder, "search study.yaml --simulate 2 --format json")
        (folder / "found.json").write_text(found.stdout)
        tasks = []
        for command in COMMANDS:
            done, whole, count = run(folder, command)
            if done.returncode != 0:
                faults.append(f"{command}: {done.returncode} {done.stderr}")
            draw = random.Random(command)
            numbers = [*range(1, FIRST + 1), *(draw.randint(FIRST + 1, count) for _ in range(DRAWN))]
            remarks = set(done.stderr.splitlines())
            tasks += [(command, whole, remarks, f"{number}{'+' if i % 3 == 0 else ''}")
                      for i, number in enumerate(numbers)]

        def fault_of(task):
            command, whole, remarks, number = task
            done, left, _ = run(folder, command, number)
            context = f"{command}, allocation {number}: {done.returncode} {done.stderr[:300]!r}"
            if done.returncode == 0:
                same = all(name in left for name in whole)
                return None if same else context + f": without {sorted(set(whole) - set(left))}"
            said = [line for line in done.stderr.splitlines() if line not in remarks]
            if done.returncode != 2 or len(said) != 1 or not said[0].startswith(MESSAGE):
                return context
            odd = [name for name, bytes in left.items()
                   if ".new-" in name or (not name.startswith("kept.db") and bytes != whole.get(name))]
            return context + f": leaves {odd}" if odd else None

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            faults += filter(None, pool.map(fault_of, tasks))
    print(f"{len(tasks)} failed allocations, {len(faults)} faults", *faults[:40], sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
