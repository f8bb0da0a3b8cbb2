#!/usr/bin/env python3
"""What `foreshard` writes and what listens: outputs keep their permissions, are whole or not there, never replace an
input, and leave nothing beside them whatever signal comes; strangers who connect to a study's rank 0 change nothing.

    doors_test.py PROGRAM SOURCE BUILD [Class.test...]
"""

import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
ALL = "FORESHARD_ALL_SEEDS" in os.environ
CLUSTER = "{name: box, node: dgx-a100-80gb}\n"
BASE = """\
cluster: cluster.yaml
model: {name: small, layers: 4, hidden: 1024, heads: 16, vocabulary: 32000, sequence: 512}
strategy: {tensor_parallel: 2, pipeline_parallel: 2, data_parallel: 2, global_batch: 64, framework: megatron-lm}
"""
SWEEP = """\
study: base.yaml
train: 1B tokens
axes:
  - {key: strategy.micro_batch, values: [1, 2, 4]}
  - {key: model.layers, values: [16, 14, 12, 10, 8, 6, 4, 3]}
  - {key: cluster.rent, values: [1 USD/h, 2 USD/h]}
"""
# Commands that write OUT, and the input that they read, if they read one. OUT.json: the name has to end so.
COMMANDS = (
    ("check base.yaml -o OUT", "base.yaml"),
    ("check cluster.yaml --kind cluster -o OUT", "cluster.yaml"),
    ("simulate base.yaml -o OUT", "base.yaml"),
    ("simulate base.yaml -o OUT", "cluster.yaml"),
    ("simulate base.yaml --trace OUT.json", "base.yaml"),
    ("simulate base.yaml --trace OUT.json", "cluster.yaml"),
    ("search base.yaml --level 0 --simulate 1 -o OUT", "base.yaml"),
    ("search base.yaml --level 0 --simulate 1 -o OUT", "cluster.yaml"),
    ("advise base.yaml -o OUT", "base.yaml"),
    ("explain found.json -o OUT", "found.json"),
    ("study sweep.yaml -o OUT", "sweep.yaml"),
    ("study sweep.yaml -o OUT", "base.yaml"),
    ("study export points.db -o OUT", "points.db"),
    ("compare base.yaml base.yaml -o OUT", "base.yaml"),
    ("export base.yaml -o OUT", "base.yaml"),
    ("export base.yaml --program OUT", "cluster.yaml"),
    ("export base.yaml --plan OUT", "base.yaml"),
    ("export base.yaml --arrivals OUT", "cluster.yaml"),
    ("export base.yaml --as megatron -o OUT", "base.yaml"),
    ("import saved.args --devices 8 -o OUT", "saved.args"),
    ("topology show cluster.yaml -o OUT", "cluster.yaml"),
    ("schema study -o OUT", None),
    ("completion bash -o OUT", None),
)
# A launcher that the tests run under is none of theirs.
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("OMPI_", "PMIX_", "SLURM_", "PMI_", "FLUX_", "PALS_"))}


class Folder(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.folder = pathlib.Path(home.name)
        for name, text in (("cluster.yaml", CLUSTER), ("base.yaml", BASE), ("sweep.yaml", SWEEP)):
            (self.folder / name).write_text(text)

    def run_in(self, *words, **others):
        return subprocess.run([PROGRAM, *words], cwd=self.folder, env=CLEAN, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, **others)

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())


class Outputs(Folder):
    def setUp(self):
        super().setUp()
        (self.folder / "saved.args").write_text("--tensor-model-parallel-size 2 --global-batch-size 64\n")
        self.run_in("search", "base.yaml", "--level", "0", "--simulate", "1", "--format", "json", "-o", "found.json")
        self.run_in("study", "sweep.yaml", "--results", "points.db", "-o", "out.txt")
        (self.folder / "out.txt").unlink()

    def test_keep_their_permissions(self):
        before = self.names()
        for command, _ in COMMANDS:
            out = self.folder / ("result.json" if "OUT.json" in command else "result")
            out.write_text("old")
            out.chmod(0o600)
            done = self.run_in(*command.replace("OUT", "result").split())
            with self.subTest(command):
                self.assertIn(done.returncode, (0, 3), done.stderr)
                self.assertNotEqual(out.read_text(), "old")
                self.assertEqual(out.stat().st_mode & 0o777, 0o600)
                out.unlink()
                self.assertEqual(self.names(), before)

    def test_never_replace_an_input(self):
        for command, name in COMMANDS:
            if name is None:
                continue
            source = self.folder / name
            text = source.read_bytes()
            ending = ".json" if "OUT.json" in command else ""
            link, other = self.folder / f"link{ending}", self.folder / f"other-name{ending}"
            link.symlink_to(name)
            os.link(source, other)
            for out in (link.stem, other.stem) if ending else (name, f"./{name}", link.name, other.name):
                done = self.run_in(*command.replace("OUT", out).split())
                with self.subTest(command=command, out=out):
                    self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                    self.assertIn("its own file", done.stderr)
                    self.assertEqual(source.read_bytes(), text)
            link.unlink()
            other.unlink()

    def test_stdout_is_appended_to(self):
        with open(self.folder / "all.txt", "wb") as file:
            for _ in range(2):
                subprocess.run([PROGRAM, "check", "base.yaml", "-o", "/dev/stdout"], cwd=self.folder, env=CLEAN,
                               stdout=file, check=True)
        once = self.run_in("check", "base.yaml").stdout
        self.assertEqual((self.folder / "all.txt").read_text(), 2 * once)

    def test_are_whole_whatever_signal_comes(self):
        before = self.names()
        words = ("simulate", "base.yaml", "--set", "strategy.global_batch=1024", "--trace", "trace.json", "--format", "json",
                 "-o", "out.json")
        begin = time.monotonic()
        self.assertEqual(self.run_in(*words).returncode, 0)
        lasts = time.monotonic() - begin
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            for i in range(100 if ALL else 8):
                for path in ("trace.json", "out.json"):
                    (self.folder / path).unlink(missing_ok=True)
                process = subprocess.Popen([PROGRAM, *words], cwd=self.folder, env=CLEAN, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL)
                time.sleep(lasts * (0.3 + i / (140 if ALL else 11)))
                process.send_signal(name)
                process.wait(60)
                for path in ("trace.json", "out.json"):
                    if (self.folder / path).exists():
                        json.loads((self.folder / path).read_text())
                self.assertLessEqual(set(self.names()), {*before, "trace.json", "out.json"}, name)


class Listeners(Folder):
    def rank(self, number, *words):
        return subprocess.Popen(
            [PROGRAM, "study", "sweep.yaml", "--results", "points.db", "--threads", "1", "--format", "json", *words],
            cwd=self.folder, env={**CLEAN, "RANK": str(number), "WORLD_SIZE": "2", "LOCAL_RANK": str(number),
                                  "FORESHARD_TOKEN": "t"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @staticmethod
    def most_memory(process):
        return 1024 * int(re.search(r"VmHWM:\s*(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1])

    @staticmethod
    def listens(port):
        """The addresses on which somebody listens at this port, as /proc has them."""
        lines = [line.split() for name in ("tcp", "tcp6") if pathlib.Path(f"/proc/net/{name}").exists()
                 for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
        return [words[1].split(":")[0] for words in lines if words[3] == "0A" and words[1].endswith(f":{port:04X}")]

    def port(self):
        for _ in range(2000):
            try:
                return int((self.folder / "points.db.rank-0").read_text().split()[0])
            except (OSError, IndexError, ValueError):
                time.sleep(0.005)
        return self.fail("rank 0 does not listen")

    def test_strangers_change_nothing(self):
        serial = self.run_in("study", "sweep.yaml", "--results", "serial.db", "--threads", "1", "--format", "json")
        self.assertEqual(serial.returncode, 0, serial.stderr)
        zero = self.rank(0)
        port = self.port()
        self.assertEqual(self.listens(port), ["0100007F"])  # the loopback alone
        silent, slowest = [], 0.0
        most = self.most_memory(zero)
        for number in range(10000 if ALL else 1000):
            with socket.socket() as one:
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", port))
                try:
                    one.send((b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff\xff", b"\0", b"x" * 9000)[number % 4])
                except OSError:
                    pass
            if number % (14 if ALL else 2) == 0 and len(silent) < 700:
                silent.append(socket.socket())
                silent[-1].setblocking(False)
                silent[-1].connect_ex(("127.0.0.1", port))
        # One that says hello is answered within a second; this one is of another job.
        words = [b"hello", b"1", b"other", b"t"]
        hello = b"".join(struct.pack("<I", len(word)) + word for word in words)
        begin = time.monotonic()
        with socket.create_connection(("127.0.0.1", port), 5) as one:
            one.sendall(struct.pack("<I", len(hello)) + hello)
            self.assertIn(b"refused", one.recv(4096))
        slowest = time.monotonic() - begin
        self.assertLess(slowest, 1)
        self.assertLess(self.most_memory(zero) - most, 50e6)
        one = self.rank(1)
        out, err = zero.communicate(timeout=300)
        self.assertEqual((zero.returncode, err.count("terminate")), (0, 0), err)
        self.assertEqual(out, serial.stdout)
        self.assertEqual(one.wait(60), 0, one.stderr.read())
        one.stdout.close(), one.stderr.close()
        for each in silent:
            each.close()
        print(f"answered within {1000 * slowest:.0f} ms", file=sys.stderr)

    def test_a_batch_script_is_alone(self):
        done = subprocess.run([PROGRAM, "study", "sweep.yaml", "--results", "alone.db"], cwd=self.folder,
                              env={**CLEAN, "SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "64",
                                   "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse((self.folder / "alone.db.rank-0").exists())  # which rank 0 of a team leaves


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
