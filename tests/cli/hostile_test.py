#!/usr/bin/env python3
"""Files that somebody made to end the program: each is refused with one message and exit code 2, within
10 seconds and 2 GiB, or answered. The inputs are made here, most of them by changing one place of a
right one.

    hostile_test.py PROGRAM SOURCE BUILD [Class.test...]
"""

import gzip
import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
DEEP = "[" * 100_000 + "]" * 100_000
# What takes the place of a number.
NUMBERS = ("-1", "0", "1e308", "1e999", "4294967296", "9223372036854775807", "18446744073709551615",
           "1e-300", "null", '"x"', "[]", "1.5")
LLAMA = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "vocab_size": 1000,
         "max_position_embeddings": 2048, "rope_scaling": {"factor": 2.0}, "attention_bias": False}
MIXTRAL = {"model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
           "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 1000,
           "num_local_experts": 4, "num_experts_per_tok": 2, "max_position_embeddings": 2048,
           "sliding_window": 128}
VIT = {"model_type": "vit", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
       "intermediate_size": 128, "image_size": 224, "patch_size": 16, "num_channels": 3}
STUDY = """\
cluster: {name: box, node: dgx-a100-80gb}
model: {name: small, layers: 4, hidden: 256, heads: 4, vocabulary: 1000, sequence: 256}
strategy: {tensor_parallel: 2, data_parallel: 4, global_batch: 16, framework: megatron-lm}
"""
SWEEP = "study: study.yaml\naxes: [{key: strategy.micro_batch, values: [1, 2]}]\n"
EVENT = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1.0, "dur": 2.0,
         "args": {"stream": 7, "correlation": 1}}
ROW = {"id": "x", "source": "s", "machine": "DGX H100", "gpu": "H100-SXM5-80GB", "num_gpus": "8",
       "nodes": "1", "gpus_per_node": "8", "intra_link": "", "inter_net": "", "nccl_version": "",
       "op": "all_reduce", "dtype": "float", "bytes": "1048576", "time_us": "50", "algbw_gbs": "",
       "busbw_gbs": "", "algo_hint": "", "notes": ""}


def places(value, path=()):
    """The paths of all members, the outer first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in inner:
        yield path + (key,)
        yield from places(member, path + (key,))


def with_text(value, path, text):
    """The value as JSON, with `text` in the place of the member at `path`."""
    copy = json.loads(json.dumps(value))
    around = copy
    for key in path[:-1]:
        around = around[key]
    around[path[-1]] = "@@place@@"
    return json.dumps(copy).replace('"@@place@@"', text)


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.write("study.yaml", STUDY)
        cls.write("sweep.yaml", SWEEP)
        for name, arguments in (("prediction", ("simulate", "study.yaml")),
                                ("found", ("search", "study.yaml", "--simulate", "3")),
                                ("swept", ("study", "sweep.yaml"))):
            done = subprocess.run([PROGRAM, *arguments, "--format", "json"], cwd=cls.folder,
                                  capture_output=True, text=True, check=True)
            cls.write(name + ".json", done.stdout)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def write(cls, name, text):
        path = cls.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def read(self, name):
        return json.loads((self.folder / name).read_text())

    def ends_well(self, *arguments, codes=(0, 2, 3), address_space=4 << 30, environment=None):
        def limits():
            resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([PROGRAM, *arguments], cwd=self.folder, capture_output=True,
                              preexec_fn=limits, timeout=120, env={**os.environ, **(environment or {})})
        said = done.stderr.decode(errors="replace")
        context = f"{' '.join(arguments)[:300]}\n{done.returncode} {said[:1000]}"
        self.assertIn(done.returncode, codes, context)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertLess(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 10, context)
        for word in ("internal error", "terminate called", "json.exception", "\x1b"):
            self.assertNotIn(word, said, context)
        self.assertLess(max(map(len, said.split("\n"))), 4200, context)
        return said

    def is_refused(self, *arguments, says=(), **more):
        said = self.ends_well(*arguments, codes=(2,), **more)
        for text in (says,) if isinstance(says, str) else says:
            self.assertIn(text, said)


class Json(Hostile):
    # reader: (right text, command that reads the file {})
    def readers(self):
        trace = {"traceEvents": [EVENT], "deviceProperties": [{"name": "NVIDIA H100"}],
                 "distributedInfo": {"rank": 0, "world_size": 1}}
        nccl = {"version": 1, "args": ["all_reduce_perf"], "config": {"nthreads": 1, "ngpus": 8}}
        calibrate = ("calibrate", "study.yaml", "--profile", "{}", "-o", "out")
        return {
            "config.json": (LLAMA, ("check", "{}")),
            "mixtral.json": (MIXTRAL, ("check", "{}")),
            "vit.json": (VIT, ("check", "{}")),
            "found.json": (self.read("found.json"), ("explain", "{}")),
            "prediction.json": (self.read("prediction.json"), ("compare", "{}", "study.yaml")),
            "swept.json": (self.read("swept.json"), ("compare", "{}", "swept.json")),
            "trace.json": (trace, calibrate),
            "inspector.json": ({"header": {"id": "a", "n_ranks": 8, "nnodes": 1}}, calibrate),
            "nccl.json": (nccl, ("calibrate", "--collectives", "{}", "-o", "out.yaml")),
            "program.json": ({"schema": "foreshard.program/1", "name": "x"}, ("replay", "{}", "--host")),
            "measured.json": ({"schema": "foreshard.measurement/1", "program": "x"},
                              ("compare", "study.yaml", "{}")),
        }

    def command(self, name, text, words):
        path = self.write("changed/" + name, text)
        return [path if word == "{}" else word for word in words]

    # An object 100,000 deep under any key; a sample of them for large files.
    def test_depth(self):
        for name, (right, words) in self.readers().items():
            keys = list(places(right))
            few = sorted(keys, key=len)[:6] + random.Random(1).sample(keys, min(len(keys), 6))
            for path in few:
                with self.subTest(name=name, path=path):
                    self.ends_well(*self.command(name, with_text(right, path, DEEP), words), codes=(2,))

    def test_numbers(self):
        draw = random.Random(2)
        for name, (right, words) in self.readers().items():
            keys = list(places(right))
            for path in keys if len(keys) < 20 else draw.sample(keys, 20):
                text = draw.choice(NUMBERS)
                with self.subTest(name=name, path=path, text=text):
                    self.ends_well(*self.command(name, with_text(right, path, text), words))

    def test_a_number_of_sizes_is_refused_as_in_yaml(self):
        for key, number, says in (("num_hidden_layers", 4294967296, "'num_hidden_layers' is 4294967296"),
                                  ("num_hidden_layers", 100000,
                                   "'num_hidden_layers' is 100000, not a whole number from 1 to 16384"),
                                  ("hidden_size", 8589934592, "'hidden_size' is 8589934592"),
                                  ("vocab_size", 1 << 25, "'vocabulary' must be between")):
            self.is_refused("check", self.write("config.json", json.dumps({**LLAMA, key: number})),
                            says=says)

    def test_negative_times(self):
        found = self.read("found.json")
        found["best"][0]["time_s"] = -1
        self.is_refused("explain", self.write("f.json", json.dumps(found)), says="0 < low_s <= time_s")
        predicted = self.read("prediction.json")
        predicted["step"]["time_s"] = -1
        self.is_refused("compare", self.write("p.json", json.dumps(predicted)), "study.yaml",
                        says="/step/time_s is negative")


class Files(Hostile):
    def test_bombs(self):
        bomb = b"".join(gzip.compress(b"[" + b" " * 100_000_000) for _ in range(10))
        self.is_refused("calibrate", "study.yaml", "--profile", self.write("bomb.json.gz", bomb), "-o",
                        "out", says="unpacks to more than 200 times")

    def test_devices_pipes_folders_and_holes(self):
        holes = self.folder / "holes.onnx"
        with open(holes, "wb") as file:
            file.truncate(2 << 30)
        os.mkfifo(self.folder / "pipe.yaml")
        readers = (("check", "{}"), ("simulate", "{}"), ("accuracy", "{}"), ("explain", "{}"),
                   ("import", "{}"), ("topology", "import", "{}"), ("calibrate", "--collectives", "{}"),
                   ("calibrate", "study.yaml", "--profile", "{}", "-o", "out"), ("replay", "{}"),
                   ("compare", "{}", "study.yaml"), ("search", "study.yaml", "--space", "{}"))
        for words in readers:
            for path in ("/dev/zero", str(self.folder), "pipe.yaml"):
                with self.subTest(words=words, path=path):
                    self.is_refused(*(path if word == "{}" else word for word in words))
        self.is_refused("check", str(holes), says="is a sparse file")
        self.is_refused("simulate", "--cluster", "two-dgx-h100", "--strategy", "{global_batch: 64}", "--model",
                        str(holes), says="sparse")

    def test_a_missing_file_beside_many(self):
        self.is_refused("simulate", "--cluster", "/usr/nope.yaml", "--model", "gpt-1.7b", "--strategy",
                        "{global_batch: 64}", says="there is no file '/usr/nope.yaml'")

    def test_limits_are_raised_by_one_variable(self):
        large = "# " + "x" * 5_000_000 + "\n" + STUDY
        path = self.write("large.yaml", large)
        self.is_refused("check", path, says="limit of 4.00 MiB; FORESHARD_LIMITS=2 doubles the limits")
        self.ends_well("check", path, codes=(0,), environment={"FORESHARD_LIMITS": "2"})
        for wrong in ("x", "0", "-1", "nan", "1e9"):
            self.is_refused("check", path, environment={"FORESHARD_LIMITS": wrong},
                            says="must be a number from 1 to 1000")


class Counts(Hostile):
    def test_rows(self):
        draw = random.Random(3)
        cells = ("0", "-1", "4294967296", "1e308", "9223372036854775807", "nan", "16777216", "x", "4096")
        for column in ("num_gpus", "nodes", "gpus_per_node", "bytes", "time_us"):
            for cell in cells:
                row = {**ROW, column: cell}
                text = ",".join(row) + "\n" + ",".join(row.values()) + "\n"
                with self.subTest(column=column, cell=cell):
                    self.ends_well("accuracy", self.write("row.csv", text))

    def test_settings(self):
        for key in ("model.layers", "model.sequence", "strategy.tensor_parallel",
                    "strategy.pipeline_parallel", "strategy.global_batch", "strategy.micro_batch",
                    "cluster.nodes"):
            for value in ("-1", "0", "1e308", "4294967296", "9223372036854775807", "1048576", "nan"):
                if (key, value) == ("strategy.global_batch", "1048576"):
                    value = "65536"  # the time of a step grows with its micro-batches
                with self.subTest(key=key, value=value):
                    self.ends_well("simulate", "study.yaml", "--set", f"{key}={value}")
        ways = [f"strategy.{way}_parallel=1048576" for way in ("tensor", "pipeline", "context", "data")]
        self.is_refused("simulate", "study.yaml", *sum((["--set", way] for way in ways), []),
                        says="ranks in all are more than")

    def test_lengths_and_prices(self):
        for setting in ("train=1e308T tokens", "train=1e30 tokens", "cluster.rent=1e308 USD/h",
                        "cluster.rent=-1 USD/h", "cluster.rent=1e35 USD/h"):
            with self.subTest(setting=setting):
                self.is_refused("simulate", "study.yaml", "--set", setting)

    def test_threads(self):
        self.write("row.csv", ",".join(ROW) + "\n" + ",".join(ROW.values()) + "\n")
        for words in (("search", "study.yaml", "--threads"), ("study", "sweep.yaml", "--threads"),
                      ("accuracy", "row.csv", "-j")):
            self.ends_well(*words, "1000000000", codes=(0,))
            for count in ("10000000000", "-1"):
                self.is_refused(*words, count, says="not in range")

    def test_lists_of_hosts(self):
        for hosts in ("node[33-65536]", "node[1-99999]", "node[1-100001]", "node[1-999999999]",
                      "n[1-400]m[1-400]", "n[" + "1-9," * 50_000 + "1]"):
            text = f"SwitchName=a Nodes=x[1-8]\nSwitchName=b Nodes={hosts}\nSwitchName=s Switches=a,b\n"
            with self.subTest(hosts=hosts[:40]):
                self.ends_well("topology", "import", self.write("topology.conf", text), "--as", "slurm",
                               "--node", "dgx-h100")
        text = "".join(f"SwitchName=s{i} Switches=a[1-99999]\n" for i in range(1000))
        self.is_refused("topology", "import", self.write("topology.conf", text), "--as", "slurm",
                        "--node", "dgx-h100")

    def test_devices(self):
        cluster = "name: huge\nnodes: {}\nnode: dgx-h100\nfabric: {{kind: single-switch}}\n"
        for nodes in (125_000, 500_000, 1_000_000_000):
            path = self.write("cluster.yaml", cluster.format(nodes))
            with self.subTest(nodes=nodes):
                self.ends_well("check", path)
                self.ends_well("topology", "show", path)


class Words(Hostile):
    def test_control_characters(self):
        said = self.ends_well("check", self.write("esc.yaml", "name: x\nlay\x1b[31mers: 2\n"), "--kind",
                              "model", codes=(2,))
        self.assertIn("\\x1b[31m", said)
        self.is_refused("simulate", "no\x1b[2Jsuch\x07", says="no\\x1b[2Jsuch\\x07")
        self.is_refused("check", self.write("a.json", '{"model_type": "ll\\u001b[31mama"}'),
                        says="ll\\x1b[31mama")

    def test_long_values(self):
        long = "x" * 100_000
        self.ends_well("check", self.write("a.json", json.dumps({**LLAMA, "hidden_size": long})),
                       codes=(2,))
        self.ends_well("check", self.write("b.json", json.dumps({"model_type": long})), codes=(2,))
        self.ends_well("simulate", "study.yaml", "--set", f"strategy.precision={long}", codes=(2,))
        self.ends_well("simulate", long, codes=(2,))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
