#!/usr/bin/env python3
"""Random calls of all functions: the command line, the library of C++ and Python give the same bytes.

    calls_test.py PROGRAM SOURCE BUILD ANSWERS [Class.test...]

ANSWERS is tests/library/answers.cc. Each call that Python makes is put to the other two in the same words.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE, BUILD, ANSWERS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:5])
sys.path.insert(0, str(BUILD / "python"))
os.environ["FORESHARD_CONFIGS"] = str(SOURCE / "configs")
CALLS = 200 if "FORESHARD_ALL_SEEDS" in os.environ else 36

import foreshard as fs  # noqa: E402

CLUSTERS = ("two-dgx-a100", "two-dgx-h100")
LAYOUTS = ("x=16 [x, -]", "x=16 [-, x]", "x=8 @0-7 [x, -]", "y [x]")
LAUNCH = SOURCE / "tests/strategies/launch/data"
ROWS = SOURCE / "tests/fuzz/corpus/fuzz_rows/collectives.csv"
MACHINES = SOURCE / "tests/topology/import/data"
ELASTIC = {"study": "gpt-1.7b-a100-8", "train": "1B tokens", "failures": "llama3-h100", "repair": "1 d",
           "detection": "2 min", "restart": "5 min", "checkpoint": {"storage": "100 GB/s"}, "policies": ["wait"],
           "histories": 5}


class Draw:
    """One random call of each function; each may also be wrong."""

    def __init__(self, seed):
        self.one = random.Random(seed).choice

    def study(self):
        one = self.one
        parts = {"cluster": one(CLUSTERS), "model": "gpt-1.7b",
                 "strategy": {"tensor_parallel": one((1, 2)), "data_parallel": 8, "global_batch": one((8, 64))}}
        text = "cluster: two-dgx-a100\nmodel: gpt-1.7b\nstrategy: {data_parallel: 16, global_batch: 32}\n"
        named = one(("gpt-1.7b-a100-8", "moe-layer-h100-8", "host-dp2", "nothing"))
        study = one((fs.Study(named), fs.Study(parts), fs.Study(text)))
        return study if one((True, True, False)) else study.set({"strategy.global_batch": one((16, 64, 7, "many"))})

    def model(self):
        return self.one((fs.Study("gpt-1.7b-a100-8"),
                         fs.Study("gpt-1.7b-a100-8", set={"strategy.global_batch": self.one((16, 32))})))

    def cluster(self):
        written = {"nodes": 2, "node": "dgx-h100", "fabric": {"kind": "single-switch"}}
        return self.one((*CLUSTERS, "no-cluster", written))

    def predict(self):
        self.study().predict()

    def predict_otherwise(self):
        self.study().predict(**self.one(({"sensitivity": True}, {"fold": False}, {"granularity": "stepwise"})))

    def search(self):
        quick = {"level": 0, "simulate": self.one((1, 2)), "certify": 0, "top": self.one((1, 3))}
        found = self.model().search(**quick, **self.one(({}, {"front": 1, "threads": 2})))
        found.explain(self.one((None, "tp8 zero1")))
        found.picture(self.one((None, "memory")))

    def advise(self):
        self.model().advise(top=self.one((1, 3)), threads=self.one((1, 2)))

    def report(self):
        fs.report(self.study(), self.study().predict(), file=os.devnull, advice=False)

    def init(self):
        fs.init(model=self.one(("gpt-1.7b", "gpt-1.7")), cluster="dgx-a100-80gb", batch=self.one((None, 64)))

    def search_graph(self):
        fs.Study("moe-layer-h100-8").search_graph(level=0, simulate=1)

    def compare(self):
        self.study().compare(set_b={"strategy.global_batch": self.one((8, 32))})

    def compare_two(self):
        fs.compare(self.study(), self.study().predict())

    def compare_measurement(self):
        self.study().compare_measurement("nothing.json")

    def replan(self):
        grown = {"cluster.nodes": 2, "cluster.fabric": {"kind": "single-switch"}}
        self.model().set(grown).replan(down=[self.one(("node1", "node7"))], level=0, simulate=1, certify=0)

    def export(self):
        self.study().export(self.one(("megatron", "deepspeed", "nothing")))

    def program(self):
        self.study().program()

    def sweep(self):
        values = self.one(([1, 2], [2, "x"]))
        fs.sweep({"study": "gpt-1.7b-a100-8", "train": "1B tokens",
                  "axes": [{"key": "strategy.micro_batch", "values": values}]}).picture()

    def elastic(self):
        fs.elastic(self.one((ELASTIC, "nothing")))

    def reshard(self):
        fs.reshard("bf16[8192,8192]", from_=self.one(LAYOUTS), to=self.one(LAYOUTS), cluster=self.cluster())

    def reshard_strategy(self):
        after = {"data_parallel": self.one((4, 8)), "global_batch": 8}
        fs.reshard_strategy({"tensor_parallel": 2, "data_parallel": 4, "global_batch": 8}, after,
                            model="gpt-1.7b", cluster="two-dgx-a100", down=self.one((None, "7")))

    def collectives(self):
        fs.collectives(self.cluster(), op=self.one(("all_reduce", "all_to_all")),
                       sizes=self.one(("1MiB", "1KiB:1MiB", "?")), all=self.one((True, False))).picture()

    def topology(self):
        fs.topology(self.cluster(), set={"nodes": self.one((2, 3))})

    def check_topology(self):
        fs.check_topology(self.cluster())

    def import_topology(self):
        fs.import_topology(self.one(sorted(MACHINES.iterdir())))

    def import_launch(self):
        fs.import_launch(self.one(sorted(LAUNCH.iterdir())), devices=128,
                         set={"strategy.micro_batch": 1, "strategy.global_batch": self.one((128, 512))})

    def calibrate(self):
        fs.calibrate("--collectives", self.one(("nothing.csv", ROWS)))

    def accuracy(self):
        fs.run("accuracy", ROWS, "--format", "json")

    def listings(self):
        self.one((fs.catalogue, fs.operators, fs.schedules, fs.build))()

    def entry(self):
        fs.entry(self.one(("H100-SXM", "gpt-1.7b", "H100")))

    def check(self):
        folder = SOURCE / "configs" / self.one(("studies", "models", "sweeps"))
        fs.check(self.one(sorted(folder.iterdir())))

    def schema(self):
        fs.schema(self.one(("study", "foreshard.search/1", "prediction", "nothing")))

    def any_words(self):
        fs.run(*self.one((("completion", "bash"), ("help", "search"), ("catalog", "models"), ("simulat",),
                          ("simulate", "gpt-1.7b-a100-8", "--format", "csv"))))


NAMES = [name for name in vars(Draw) if name[0] != "_" and name not in ("study", "model", "cluster")]


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.answers = subprocess.Popen([ANSWERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @classmethod
    def tearDownClass(cls):
        cls.answers.stdin.close()
        cls.answers.wait()
        cls.answers.stdout.close()

    def setUp(self):
        core = sys.modules["foreshard._core"]
        run = core.run
        self.asked, self.by_function = 0, 0

        def run_thrice(words, input, told):
            answer = run(words, input, told)
            self.compare(words[2:] if words[0] == "--configs" else words, input, answer)
            return answer

        core.run = run_thrice
        self.addCleanup(setattr, core, "run", run)

    def compare(self, words, input, answer):
        self.asked += 1
        code, text, _ = answer
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([PROGRAM, *words], input=input, capture_output=True, text=True, cwd=folder)
        self.assertEqual((code, text), (done.returncode, done.stdout), words)
        self.answers.stdin.write(json.dumps({"words": words, "input": input}) + "\n")
        self.answers.stdin.flush()
        told = json.loads(self.answers.stdout.readline())
        self.assertEqual((told["code"], told["text"]), (code, text), words)
        self.by_function += told["function"]

    def test_random_calls(self):
        answered = 0
        for seed in range(CALLS):
            name = NAMES[seed % len(NAMES)]
            with self.subTest(seed=seed, call=name):
                try:
                    getattr(Draw(seed), name)()
                    answered += 1
                except fs.Error:
                    pass
        print(f"{CALLS} calls, {answered} with an answer; {self.asked} commands, "
              f"{self.by_function} by a function of C++", file=sys.stderr)
        self.assertGreater(answered, CALLS / 2)
        self.assertGreater(self.by_function, CALLS / 2)

    def test_every_function_is_drawn(self):
        asking = {name for name in fs.__all__ if callable(getattr(fs, name)) and name[0].islower()}
        drawn = set(NAMES) | {"explain", "catalogue", "operators", "schedules", "build", "run", "catalogue_folder"}
        self.assertEqual(asking - drawn, set())
        methods = {name for name, one in vars(fs.Study).items() if callable(one) and name[0] != "_"}
        self.assertEqual(methods - drawn - {"words", "set"}, set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
