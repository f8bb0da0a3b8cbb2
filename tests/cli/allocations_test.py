#!/usr/bin/env python3
"""Commands whose n-th allocation fails: each ends with the one message about memory and exit code 2, or as it
does otherwise, and leaves either its whole output or none. A search that has simulated something may end with the
best so far and exit code 5. fail_allocation.cc lets allocations fail.

    allocations_test.py PROGRAM SOURCE BUILD LIBRARY [REPLAY]

REPLAY: the program foreshard-replay, where it was built with --host. Of each command the first 20 allocations and 12
later ones fail; with FORESHARD_ALL_SEEDS, the first 2,000 and 500 later ones.
"""

import json
import os
import pathlib
import queue
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM, LIBRARY = sys.argv[1], sys.argv[4]
REPLAY = "".join(sys.argv[5:])
FIRST, DRAWN = (2000, 500) if os.environ.get("FORESHARD_ALL_SEEDS") else (20, 12)
STUDY = """\
cluster: {name: box, node: dgx-a100-80gb}
model: {name: small, layers: 4, hidden: 256, heads: 4, vocabulary: 1000, sequence: 256}
strategy: {tensor_parallel: 2, data_parallel: 4, global_batch: 16, framework: megatron-lm}
"""
ALONE = """\
cluster: {name: one, node: h200-1gpu}
model: {name: tiny, layers: 2, hidden: 64, heads: 4, vocabulary: 256, sequence: 32}
strategy: {global_batch: 2, framework: megatron-lm}
"""
SWEEP = "study: study.yaml\naxes: [{key: strategy.micro_batch, values: [1, 2]}]\n"
SEARCH = "search ../study.yaml --simulate 2 --threads 2 --format json -o out/out.json"
# Each runs in a folder of its own.
COMMANDS = (
    "simulate ../study.yaml --format json -o out/out.json",
    "simulate ../study.yaml --trace out/trace.json -o out/out.txt",
    SEARCH,
    "study ../sweep.yaml --threads 2 --results out/kept.db -o out/out.txt",
    "explain ../found.json -o out/out.txt",
    "check ../study.yaml -o out/out.yaml",
    "reshard --tensor bf16[8192,8192] --from 'x=8 [x, -]' --to 'x=8 [-, x]' --cluster two-dgx-h100 -o out/out.txt",
    "export ../study.yaml --program out/step.json",
    "topology show two-dgx-h100 -o out/out.txt",
    "compare ../study.yaml ../other.yaml -o out/out.txt",
)
COMMANDS_OF_REPLAY = (
    "../step.json --check",
    "../step.json --host --verify --warmup 0 --repeats 1 -o out/measured.json",
)
MESSAGE = "error: out of memory"


class Server:
    """A process that runs copies of one command, one after the other (fail_allocation.cc)."""

    def __init__(self, folder, program, command):
        environment = {**os.environ, "LD_PRELOAD": LIBRARY, "OPENBLAS_NUM_THREADS": "1"}
        (folder / "server").mkdir(exist_ok=True)
        self.folder = folder
        self.process = subprocess.Popen(["bash", "-c", f"exec '{program}' {command}"], cwd=folder / "server",
                                        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, number="0-"):
        """Exit code, lines on stderr, outputs, and the number of allocations, of which the one of `number` fails."""
        with tempfile.TemporaryDirectory(dir=self.folder) as own:
            own = pathlib.Path(own)
            (own / "out").mkdir()
            self.process.stdin.write(f"{number} {own}\n")
            self.process.stdin.flush()
            code = int(self.process.stdout.readline() or 127)
            left = {path.name: path.read_bytes() for path in sorted((own / "out").iterdir())}
            said = (own / "stderr").read_text().splitlines() if (own / "stderr").exists() else []
            count = int((own / "count").read_text()) if (own / "count").exists() else 0
            return code, said, left, count

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def is_best_so_far(text):
    found = json.loads(text)
    return found["partial"] and found["missing_resource"].startswith("out of memory") and found["best"][0]["fits"]


def fault_in(command, number, outcome, whole, remarks):
    code, said, left, _ = outcome
    context = f"{command}, allocation {number}: {code} {said[:3]}"
    if code == 0:
        return None if all(name in left for name in whole) else f"{context}: without {sorted(set(whole) - set(left))}"
    said = [line for line in said if line not in remarks]
    if code == 5 and command == SEARCH and not said:
        return None if is_best_so_far(left["out.json"]) else f"{context}: is no best so far"
    if code != 2 or len(said) != 1 or not said[0].startswith(MESSAGE):
        return context
    odd = [name for name, content in left.items()
           if ".new-" in name or (not name.startswith("kept.db") and content != whole.get(name))]
    return f"{context}: leaves {odd}" if odd else None


def faults_of(folder, program, command):
    """The faults, the number of failed allocations, and how many of them ended with the best so far."""
    servers = [Server(folder, program, command) for _ in range(os.cpu_count())]
    code, said, whole, count = servers[0].run()
    faults, partial = [], []
    if code != 0 or not count:
        faults.append(f"{command}: {code} {said}")
    draw = random.Random(command)
    numbers = [*range(1, min(FIRST, count) + 1)]
    numbers += (draw.randint(FIRST + 1, count) for _ in range(DRAWN) if count > FIRST)
    tasks = queue.SimpleQueue()
    for i, number in enumerate(numbers):
        tasks.put(f"{number}{'+' if i % 3 == 0 else '-'}")

    def work(server):
        while not tasks.empty():
            try:
                number = tasks.get_nowait()
            except queue.Empty:
                return
            outcome = server.run(number)
            partial.extend([number] if outcome[0] == 5 else [])
            fault = fault_in(command, number, outcome, whole, set(said))
            faults.extend([fault] if fault else [])

    threads = [threading.Thread(target=work, args=(server,)) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for server in servers:
        server.close()
    return faults, len(numbers), len(partial)


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faults, all_numbers, all_partial = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "study.yaml").write_text(STUDY)
        (folder / "other.yaml").write_text(STUDY.replace("layers: 4", "layers: 8"))
        (folder / "sweep.yaml").write_text(SWEEP)
        (folder / "alone.yaml").write_text(ALONE)
        for line in ("search study.yaml --simulate 2 --format json -o found.json",
                     "export alone.yaml --program step.json"):
            subprocess.run([PROGRAM, *line.split()], cwd=folder, check=True, capture_output=True)
        programs = [(PROGRAM, command) for command in COMMANDS]
        programs += [(REPLAY, command) for command in COMMANDS_OF_REPLAY if REPLAY]
        for program, command in programs:
            begin = time.monotonic()
            found, numbers, partial = faults_of(folder, program, command)
            print(f"{numbers} failed allocations, {len(found)} faults, {time.monotonic() - begin:.1f} s: {command}")
            faults += found
            all_numbers += numbers
            all_partial += partial
    if all_partial == 0:
        faults.append("no search ended with the best so far")
    print(f"{all_numbers} failed allocations, {len(faults)} faults, {all_partial} with the best so far", *faults[:40],
          sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
