#!/usr/bin/env python3
"""The package foreshard answers as the program, in this process, which it neither ends nor disturbs.

    package_test.py PROGRAM SOURCE BUILD [Class.test...]
"""

import dataclasses
import inspect
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM, SOURCE, BUILD = map(pathlib.Path, sys.argv[1:4])
sys.path.insert(0, str(BUILD / "python"))
os.environ["FORESHARD_CONFIGS"] = str(SOURCE / "configs")

import foreshard as fs  # noqa: E402

SMALL = "gpt-1.7b-a100-8"
CLUSTER = "two-dgx-a100"
QUICK = {"level": 0, "simulate": 2, "certify": 0, "front": 1}

# Names of numbers: with a unit, or of a count or a ratio.
UNIT = re.compile(r"_(s|bytes|usd|kwh|kg|pct|mhz|days|per_\w+|flops|tflops|gpu|share)$|_s_at_|_usd_at_|"
                  r"^(usd|kwh|kg|joules|watts|celsius|days)|^(bytes|channels|checkpoints|devices|launches)$|"
                  r"^(messages|moves|samples|steps|tokens|training_steps)$|"
                  r"^(mfu|kendall_tau|goodput_at_most|estimate_over_simulated|below_\w+|coverage)$")
# Classes whose unit is in the key that holds them (breakdown_s), or in a field `unit`.
UNIT_ELSEWHERE = {"Breakdown", "Figure", "IntervalSource", "Row", "Span", "Spread"}


def printed(*words, stdin=""):
    done = subprocess.run([PROGRAM, *map(str, words)], input=stdin, capture_output=True, text=True)
    return done.stdout


class Package(unittest.TestCase):
    def same(self, result, *words, stdin=""):
        text = result if isinstance(result, str) else result.json()
        self.assertEqual(text, printed(*words, stdin=stdin), words)
        return result

    def test_pages_and_first_studies(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.html"
            study = fs.Study(cluster="{node: dgx-a100-80gb}", model="gpt-1.7b",
                             strategy={"data_parallel": 8, "global_batch": 64, "zero_stage": 1})
            study.report(page, advice=False)
            self.assertIn("GPT 1.7B", page.read_text())
            fs.report(study.predict(), fs.Study(study_text := fs.init(model="gpt-1.7b", cluster="dgx-a100-80gb",
                                                                      batch=64)), file=page, advice=False)
            self.assertIn("global_batch: 64", study_text)
            self.assertEqual(page.read_text().count("<!DOCTYPE html>"), 1)
            study.predict().report(page)
            with self.assertRaises(fs.Error):
                fs.catalogue().report(page)

    def test_studies(self):
        as_json = ("--format", "json")
        step = self.same(fs.Study(SMALL).predict(), "simulate", SMALL, *as_json)
        self.assertEqual(step.step.time_s, json.loads(step.json())["step"]["time_s"])
        self.assertIsInstance(step, fs.results.Prediction)
        self.assertIsInstance(step.classes[0], fs.results.Class)
        self.assertEqual(step.code, 0)
        self.assertIn("fits", step._repr_html_())
        for field in dataclasses.fields(step):
            getattr(step, field.name)

        parts = {"cluster": CLUSTER, "model": "gpt-1.7b",
                 "strategy": {"tensor_parallel": 2, "data_parallel": 8, "global_batch": 64}}
        whole = fs.Study(parts)
        strategy = json.dumps(parts["strategy"])
        words = ("--cluster", CLUSTER, "--model", "gpt-1.7b", "--strategy", strategy)
        self.same(whole.predict(), "simulate", *words, *as_json)
        self.assertEqual(fs.Study(**parts).predict(), whole.predict())
        text = f"cluster: {CLUSTER}\nmodel: gpt-1.7b\nstrategy: {strategy}\n"
        self.same(fs.Study(text).predict(), "simulate", "-", *as_json, stdin=text)
        self.same(whole.set({"strategy.zero_stage": 1}, strategy__sequence_parallel=True).predict(),
                  "simulate", *words, "--set", "strategy.zero_stage=1", "--set",
                  "strategy.sequence_parallel=true", *as_json)
        self.same(whole.compare(set_b={"strategy.zero_stage": 1}), "compare", *words, "--set-b",
                  "strategy.zero_stage=1", *as_json)
        self.same(whole.export("megatron"), "export", *words, "--as", "megatron")
        self.assertEqual(fs.compare(whole, whole.set({"strategy.zero_stage": 1})).code, 0)

    def test_a_search_and_what_it_found(self):
        found = fs.Study(SMALL).search(**QUICK, top=2)
        self.same(found, "search", SMALL, "--level", 0, "--top", 2, "--simulate", 2, "--certify", 0,
                  "--front", 1, "--format", "json")
        self.assertEqual(len(found), len(found.best))
        self.assertAlmostEqual(found[0].study.predict().step.time_s, found[0].row.time_s)
        self.assertEqual(found.explain().first.words, found[0].row.words)
        self.assertIn("<table>", found._repr_html_())

    def test_advice(self):
        study = fs.Study(SMALL)
        advice = study.advise(top=2)
        self.same(advice, "advise", SMALL, "--top", 2, "--format", "json")
        self.assertEqual(len(advice.changes), 2)
        for one in advice.changes:
            changed = study.set(one.settings).predict()
            self.assertEqual(changed.step.time_s, one.after.step_s)
            self.assertEqual(changed.memory.peak_bytes, one.after.peak_bytes)

    def test_others(self):
        as_json = ("--format", "json")
        self.same(fs.topology(CLUSTER), "topology", "show", CLUSTER, *as_json)
        self.same(fs.check_topology(CLUSTER), "topology", "check", CLUSTER, *as_json)
        self.same(fs.collectives(CLUSTER, sizes="1MiB", ranks="0-15"), "topology", "collectives",
                  CLUSTER, "--sizes", "1MiB", "--ranks", "0-15", *as_json)
        self.same(fs.reshard("bf16[8192,8192]", from_="x=16 [x, -]", to="x=16 [-, x]", cluster=CLUSTER),
                  "reshard", "--tensor", "bf16[8192,8192]", "--from", "x=16 [x, -]", "--to",
                  "x=16 [-, x]", "--cluster", CLUSTER, *as_json)
        self.same(fs.catalogue(), "catalog", *as_json)
        self.same(fs.operators(), "catalog", "operators", *as_json)
        self.same(fs.schedules(), "catalog", "schedules", *as_json)
        self.same(fs.entry("H100-SXM"), "catalog", "show", "H100-SXM")
        self.same(fs.build(), "version", *as_json)
        self.assertEqual(fs.schema("study"), json.loads(printed("schema", "study")))
        points = {"study": SMALL, "axes": [{"key": "strategy.micro_batch", "values": [1, 2]}]}
        swept = self.same(fs.sweep(points), "study", "-", *as_json, stdin=json.dumps(points))
        self.assertEqual(swept.points, 2)
        of_parts = fs.sweep({"cluster": CLUSTER, "model": "gpt-1.7b", "axes": points["axes"],
                             "strategy": {"data_parallel": 16, "global_batch": 64}})
        self.assertEqual(of_parts.results[0].status, "ok")
        self.same(fs.check(SOURCE / f"configs/studies/{SMALL}.yaml"), "check",
                  SOURCE / f"configs/studies/{SMALL}.yaml")
        before = {"tensor_parallel": 2, "data_parallel": 4, "global_batch": 8}
        after = {"data_parallel": 8, "global_batch": 8}
        self.same(fs.reshard_strategy(before, after, model="gpt-1.7b", cluster=CLUSTER), "reshard",
                  "--from-strategy", json.dumps(before), "--to-strategy", json.dumps(after), "--model",
                  "gpt-1.7b", "--cluster", CLUSTER, *as_json)

    def test_frames(self):
        try:
            import pandas
        except ImportError:
            with self.assertRaises(ImportError):
                fs.topology(CLUSTER).frame()
            self.skipTest("pandas is not installed")
        frame = fs.topology(CLUSTER).frame()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(len(fs.Study(SMALL).predict().frame()), 1)

    def test_errors(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "study.yaml"
            path.write_text("cluster: two-dgx-h100\nmodel: gpt-1.7b\nstrategy:\n  tensor_paralel: 2\n")
            with self.assertRaises(fs.Error) as caught:
                fs.Study(path).predict()
            error = caught.exception
            self.assertEqual((error.file, error.line, error.column), (str(path), 4, 3))
            self.assertIn("did you mean 'tensor_parallel'?", error.remedy)
            self.assertIn(str(path), str(error))
        with self.assertRaisesRegex(fs.Error, "another process"):
            fs.Study(SMALL).predict(engine="simgrid")
        unfit = fs.Study(SMALL).set({"strategy": {"data_parallel": 8, "micro_batch": 16,
                                                  "global_batch": 128}}).predict()
        self.assertFalse(unfit.feasible)
        self.assertEqual(unfit.code, 3)

    def test_threads(self):
        alone = fs.Study(SMALL).predict().json()
        answers = []
        ask = lambda: answers.append(fs.Study(SMALL).predict().json())
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [alone] * 8)

    def interrupted(self, call, after=None):
        """What `call(progress)` returns or raises if Ctrl-C comes at its first progress, or `after` so many
        seconds, and how long that takes, in seconds."""
        pressed = []

        def press(*_):
            if not pressed:
                pressed.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)

        if after:
            timer = threading.Timer(after, press)
            timer.start()
            self.addCleanup(timer.cancel)
        try:
            answer = call(press)
        except KeyboardInterrupt as raised:
            answer = raised
        self.assertTrue(pressed)
        return answer, time.monotonic() - pressed[0]

    def test_interrupts(self):
        before = signal.getsignal(signal.SIGINT)
        study = fs.Study("gpt3-175b-a100-1024")
        found, _ = self.interrupted(
            lambda press: study.search(level=2, simulate=500, certify=0, progress=press))
        self.assertIsInstance(found, fs.Found)
        self.assertTrue(found.partial)
        self.assertEqual(found.code, 5)
        raised, wait = self.interrupted(
            lambda press: fs.elastic("llama2-70b-h100-128", progress=press))
        self.assertIsInstance(raised, KeyboardInterrupt)
        self.assertLess(wait, 3)  # a second, where others leave it a processor
        large = fs.Study(cluster="h100-16384", model="llama3-405b", strategy={
            "tensor_parallel": 8, "pipeline_parallel": 16, "layers_per_stage": [7] + [8] * 14 + [7],
            "data_parallel": 128, "micro_batch": 1, "global_batch": 2048})
        raised, wait = self.interrupted(lambda press: large.predict(), after=0.7)
        self.assertIsInstance(raised, KeyboardInterrupt)  # while the step is put together
        self.assertLess(wait, 3)
        raised, wait = self.interrupted(
            lambda press: fs.collectives("h100-16384", op="all_to_all", sizes="1MiB"), after=0.7)
        self.assertIsInstance(raised, KeyboardInterrupt)  # while routes are looked for
        self.assertLess(wait, 3)
        self.assertIs(signal.getsignal(signal.SIGINT), before)

    def test_internal_errors(self):
        core = sys.modules["foreshard._core"]
        run = core.run
        core.run = lambda *_: (1, "", [(True, "internal error: x.cc:1: y does not hold", "", 0, 0, "")])
        try:
            with self.assertRaisesRegex(fs.InternalError, "x.cc:1"):
                fs.catalogue()
        finally:
            core.run = run

    def test_progress(self):
        told = []
        fs.Study(SMALL).search(**QUICK, progress=lambda *one: told.append(one))
        for what, done, total in told:
            self.assertEqual(what, "simulating")
        def fault(*_):
            raise ValueError("mine")
        with self.assertRaisesRegex(ValueError, "mine"):
            fs.run("search", "gpt3-175b-a100-1024", "--level", "2", "--format", "json", progress=fault)

    def test_every_public_name_is_described(self):
        """Each function says what its arguments mean and which errors it raises; each number of a result has
        a unit in its name, or a description."""
        def described(name, one, arguments):
            text = one.__doc__ or ""
            self.assertTrue(text, name)
            for argument in arguments:
                self.assertRegex(text, rf"(?m)^ +([\w, ]+, )?{argument}(, [\w, ]+)?: ", name)
            asks = not inspect.isclass(one) and re.search(r"(?<!def )\b_?(run|json)\(", inspect.getsource(one))
            self.assertTrue(not asks or "Raises:" in text, name)

        for name in fs.__all__:
            one = getattr(fs, name)
            if inspect.isfunction(one):
                described(name, one, inspect.signature(one).parameters)
            if not inspect.isclass(one):
                continue
            self.assertTrue(one.__doc__, name)
            for method, of in vars(one).items():
                if method[0] == "_" or not (inspect.isfunction(of) or isinstance(of, property)):
                    continue
                function = of.fget if isinstance(of, property) else of
                described(f"{name}.{method}", function, [*inspect.signature(function).parameters][1:])
        described("Study", fs.Study, [*inspect.signature(fs.Study).parameters])
        for kind in vars(fs.results).values():
            if not dataclasses.is_dataclass(kind) or kind.__module__ != fs.results.__name__:
                continue
            self.assertTrue(kind.__doc__)
            for field in dataclasses.fields(kind):
                if "float" not in str(field.type) or f" {field.name}: " in kind.__doc__:
                    continue
                if kind.__name__ not in UNIT_ELSEWHERE:
                    self.assertRegex(field.name, UNIT, kind.__name__)

    def resident(self):
        """Memory of this process, in MiB."""
        return int(re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) / 1024

    def test_memory_stays_flat(self):
        """10,000 calls where there is time for them, 300 else: nothing is kept from call to call."""
        calls = 10000 if "FORESHARD_ALL_SEEDS" in os.environ else 300
        study = fs.Study("host-dp2")
        for _ in range(calls // 5):
            study.predict()
        before = self.resident()
        for _ in range(calls - calls // 5):
            study.predict()
        self.assertLess(self.resident() - before, 4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
