#!/usr/bin/env python3
"""Bundles and reports: what a bundle holds equals the trace and the prediction, and the page says it.

    report_test.py PROGRAM SOURCE BUILD [Class.test...]
"""

import base64
import collections
import gzip
import html.parser
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]
STUDY = "gpt3-175b-a100-1024"
SMALL = "gpt-1.7b-a100-8"
FAILING = "gpt-39.1b-a100-64"
RING = "cluster: two-dgx-a100\nmodel: gpt-1.7b\nstrategy: {data_parallel: 16, global_batch: 32, framework: megatron-lm}\n"
VOID = {"meta", "br", "rect", "line", "path", "circle"}


def numbers(data):
    """LEB128: seven bits a byte, the lowest first."""
    number = shift = 0
    for byte in data:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield number
            number = shift = 0


def spans(level):
    """(start, end, name, number) of each span, times in nanoseconds."""
    flat = list(numbers(gzip.decompress(base64.b64decode(level["data"]))))
    n = level["count"]
    assert len(flat) == 4 * n
    at, found = 0, []
    for gap, length, name, number in zip(flat[:n], flat[n:2 * n], flat[2 * n:3 * n], flat[3 * n:]):
        found.append((at + gap, at + gap + length, name, number))
        at += gap + length
    return found


class Reader(html.parser.HTMLParser):
    """Elements that are closed in order, texts, and the data of the time line."""

    def __init__(self):
        super().__init__()
        self.open, self.texts, self.elements = [], [], collections.Counter()

    def handle_starttag(self, tag, attrs):
        self.elements[tag] += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements[tag] += 1

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        self.texts.append(data)


class Given(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def run_program(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], cwd=self.path, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def bundle(self, *words):
        self.run_program("simulate", *words, "--bundle", "step.fsr", "--trace", "trace.json")
        return json.loads(gzip.decompress((self.path / "step.fsr").read_bytes()))


class Stdin(Given):
    def test_a_study_and_a_result_are_told_apart(self):
        result = self.run_program("simulate", SMALL, "--format", "json").stdout
        for text, words in ((RING, ("--no-advice",)), (result, ())):
            done = subprocess.run([PROGRAM, "report", "-", *words], input=text, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("<!DOCTYPE html>", done.stdout)
            done = subprocess.run([PROGRAM, "plot", "-"], input=text, capture_output=True, text=True)
            self.assertIn("<svg", done.stdout)
        done = subprocess.run([PROGRAM, "plot", "-"], input="models: none\n", capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)


class Bundle(Given):
    def test_tasks_are_those_of_the_trace(self):
        result = self.bundle(SMALL, "--set", "strategy.pipeline_parallel=2")
        line, step = result["bundle"]["time_line"], result["step"]["time_s"] * 1e9
        events = json.loads((self.path / "trace.json").read_text())["traceEvents"]
        threads = {(one["pid"], one["tid"]): one["args"]["name"] for one in events
                   if one["name"] == "thread_name"}
        traced = collections.defaultdict(list)
        for one in events:
            if one["ph"] == "X" and one["dur"] > 0:
                traced[one["pid"], threads[one["pid"], one["tid"]]].append(one)
        drawn = {(track["class"], track["stream"]): track["levels"][-1] for track in line["tracks"]
                 if track["class"] is not None}
        self.assertEqual(set(traced), set(drawn))
        tasks = 0
        for key, level in drawn.items():
            self.assertEqual(level["level"], "tasks")
            exact = sorted(traced[key], key=lambda one: one["ts"])
            found = spans(level)
            self.assertEqual(len(found), len(exact))
            for (start, end, name, number), one in zip(found, exact):
                self.assertAlmostEqual(start, 1e3 * one["ts"], delta=1e-6 * step + 2)
                self.assertAlmostEqual(end, 1e3 * (one["ts"] + one["dur"]), delta=1e-6 * step + 2)
                self.assertEqual(line["names"][name]["name"],
                                 f"{one['args']['block']} / {one['name']}")
                self.assertEqual(number, max(one["args"]["layer"], 0))
            tasks += len(found)
        self.assertGreater(tasks, 1000)

    def test_passes_hold_their_layers_and_micro_batches(self):
        result = self.bundle(STUDY)
        line = result["bundle"]["time_line"]
        compute = [track for track in line["tracks"] if len(track["levels"]) == 3]
        self.assertEqual(len(compute), len(result["classes"]))
        kinds = collections.Counter()
        for track in compute:
            levels = {level["level"]: spans(level) for level in track["levels"]}
            for level in levels.values():
                self.assertEqual(level, sorted(level))
            passes = levels["passes"]
            room = 2e-6 * 1e9 * result["step"]["time_s"]
            of = iter(passes)
            around = next(of)
            for start, end, name, number in levels["layers"]:
                while end > around[1] + room:
                    around = next(of)
                self.assertLessEqual(around[0] - room, start)
            for _, _, name, number in passes:
                kinds[line["names"][name]["name"]] += 1
        # 8 stages, 48 micro-batches of the interleaved schedule as the study says
        self.assertEqual(set(kinds), {"forward", "backward", "optimizer"})
        self.assertEqual(kinds["forward"], kinds["backward"])

    def test_memory_has_the_peak_and_links_have_a_use(self):
        result = self.bundle(STUDY)
        bundle = result["bundle"]
        for curve in bundle["memory_over_time"]:
            of = result["classes"][curve["class"]]["memory"]
            live = [sum(values) for values in zip(*(curve[kind + "_bytes"] for kind in
                                                    of["by_kind_bytes"]))]
            self.assertAlmostEqual(max(live), of["peak_bytes"], delta=8)
            self.assertEqual(curve["time_s"], sorted(curve["time_s"]))
        for group in bundle["link_groups"]:
            use = group["most_bytes"] / group["bandwidth_bytes_per_s"] / result["step"]["time_s"]
            self.assertLess(use, 1 + 1e-9)
            self.assertLessEqual(group["mean_bytes"], group["most_bytes"])
        self.assertGreater(bundle["executed_flops"], bundle["model_flops"])  # it recomputes


    def test_links_carry_what_rings_send(self):
        """Two nodes of eight with eight adapters each: a ring over 16 ranks sends 15/16 of the bytes
        twice, an eighth of them over each adapter, in each direction; with folding and without."""
        (self.path / "study.yaml").write_text(RING)
        groups = []
        for more in ((), ("--no-fold",)):
            self.run_program("simulate", "study.yaml", "--bundle", "x.fsr", *more)
            result = json.loads(gzip.decompress((self.path / "x.fsr").read_bytes()))
            self.assertEqual({one["algorithm"] for one in result["collectives"]
                              if one["bytes"] > 1e6}, {"ring"})
            total = sum(one["bytes"] * one["operations"] for one in result["collectives"])
            use = {one["what"]: one for one in result["bundle"]["link_groups"]}
            for way in ("node*/nic* -> switch", "switch -> node*/nic*"):
                self.assertEqual(use[way]["links"], 16)
                self.assertAlmostEqual(use[way]["most_bytes"] / (2 * 15 / 16 * total / 8), 1, delta=1e-4)
                self.assertAlmostEqual(use[way]["mean_bytes"] / use[way]["most_bytes"], 1, delta=1e-9)
            groups.append(use)
        self.assertEqual(*groups)

    def test_what_a_failure_leaves_undone_is_not_counted(self):
        """A device fails in the first second of about twenty: most of the step never runs."""
        failure = "disturbances.failures=[{device: node3/gpu5, at: 1 s}]"
        whole = self.bundle(FAILING)["bundle"]
        self.run_program("simulate", FAILING, "--set", failure, "--bundle", "x.fsr", code=3)
        result = json.loads(gzip.decompress((self.path / "x.fsr").read_bytes()))
        self.assertLess(result["bundle"]["executed_flops"], 0.6 * whole["executed_flops"])
        self.assertLess(max(one["most_bytes"] for one in result["bundle"]["link_groups"]),
                        max(one["most_bytes"] for one in whole["link_groups"]) + 1)
        page = self.run_program("report", "x.fsr").stdout
        for said in ("The step never ends:", "fails on node3/gpu5", "what uses it fails"):
            self.assertIn(said, page)
        said = self.run_program("plot", "x.fsr", code=2).stderr
        self.assertIn("its step never ends: a failure interrupts it", said)


class Page(Given):
    def page(self, *words):
        self.run_program("report", *words, "-o", "x.html")
        text = (self.path / "x.html").read_text()
        reader = Reader()
        reader.feed(text)
        self.assertEqual(reader.open, [])
        return text, reader

    def test_a_study_is_simulated(self):
        text, reader = self.page(SMALL)
        result = json.loads(self.run_program("simulate", SMALL, "--format", "json").stdout)
        self.assertIn(f"{100 * result['throughput']['mfu']:.1f} % of the peak", text)
        self.assertGreaterEqual(reader.elements["svg"], 6)
        self.assertEqual(reader.elements["canvas"], 1)
        self.assertLess(len(text), 400_000)
        for outside in ("http://", "https://"):
            rest = text.replace("http://www.w3.org/2000/svg", "")
            self.assertNotIn(outside, rest)

    def test_results_have_sections(self):
        self.run_program("search", SMALL, "--level", "0", "--format", "json", "-o", "found.json")
        self.run_program("topology", "collectives", "two-dgx-h100", "--ranks", "0-15", "--format",
                         "json", "-o", "curve.json")
        self.run_program("simulate", SMALL, "--format", "json", "-o", "step.json")
        text, reader = self.page("found.json", "curve.json", "step.json")
        found = json.loads((self.path / "found.json").read_text())
        for one in found["best"]:
            self.assertIn(one["words"], text)
        self.assertEqual(reader.elements["canvas"], 0)
        self.assertIn("--bundle", text)

    def test_a_large_step_is_small(self):
        self.run_program("simulate", STUDY, "--bundle", "step.fsr")
        text, _ = self.page("step.fsr")
        self.assertLess(len(text), 400_000)

    def test_nothing_from_outside_becomes_markup(self):
        evil = "<script>alert(1)</script>\"'&"
        result = json.loads(self.run_program("simulate", SMALL, "--format", "json").stdout)
        result["study"]["name"] = result["study"]["model"] = evil
        result["inputs"][0]["path"] = "/home/somebody/secret/study.yaml"
        (self.path / "evil.json").write_text(json.dumps(result))
        text, reader = self.page("evil.json")
        self.assertNotIn("<script>alert", text)
        self.assertTrue(any(evil in one for one in reader.texts))
        self.assertNotIn("somebody", text)
        self.run_program("simulate", SMALL, "--bundle", "step.fsr")
        bundle = json.loads(gzip.decompress((self.path / "step.fsr").read_bytes()))
        bundle["bundle"]["time_line"]["names"][0]["name"] = "</script><script>alert(1)</script>"
        (self.path / "evil.fsr").write_bytes(gzip.compress(json.dumps(bundle).encode()))
        text, _ = self.page("evil.fsr")
        self.assertNotIn("</script><script>alert", text)

    def test_faults(self):
        self.run_program("simulate", SMALL, "--bundle", "step.fsr")
        whole = (self.path / "step.fsr").read_bytes()
        (self.path / "cut.fsr").write_bytes(whole[:len(whole) // 2])
        (self.path / "other.json").write_text('{"schema": "somebody.else/1"}')
        (self.path / "part.json").write_text('{"schema": "foreshard.prediction/1"}')
        for words, said in ((("cut.fsr",), "cut.fsr: ends before"),
                            (("other.json",), "other.json: a report is made of"),
                            (("part.json",), "part.json: it is no whole 'prediction'"),
                            (("absent",), "absent"),
                            (("step.fsr", "--set", "a=b"), "--set changes a study"),
                            (("step.fsr", "-o", "no/such/x.html"), "no/such")):
            message = self.run_program("report", *words, code=2).stderr
            self.assertIn(said, message)
            self.assertEqual(len(re.findall("error:", message)), 1, message)
        for place, value, said in (("count", 10**15, "ends too early"), ("count", -1, "ends too early"),
                                   ("data", "?", "no base64"), ("level", 7, "without a name")):
            broken = json.loads(gzip.decompress(whole))
            broken["bundle"]["time_line"]["tracks"][1]["levels"][0][place] = value
            (self.path / "broken.json").write_text(json.dumps(broken))
            self.assertIn(said, self.run_program("report", "broken.json", code=2).stderr)
        broken = json.loads(gzip.decompress(whole))
        broken["bundle"]["time_line"]["tracks"][1]["class"] = 99
        (self.path / "broken.json").write_text(json.dumps(broken))
        self.assertIn("names class 99", self.run_program("report", "broken.json", code=2).stderr)
        self.assertFalse((self.path / "x.html").exists())
        said = self.run_program("simulate", SMALL, "--bundle", "-", code=2).stderr
        self.assertIn("--bundle: a bundle goes to a file", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
