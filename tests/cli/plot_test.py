#!/usr/bin/env python3
"""Pictures of real results: well-formed, and each mark has the value of the result.

    plot_test.py PROGRAM SOURCE BUILD [Class.test...]
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
STUDY = "gpt3-175b-a100-1024"
SMALL = "gpt-1.7b-a100-8"
SWEEP = f"study: {SMALL}\ntrain: 1B tokens\naxes: [{{key: strategy.micro_batch, values: [1, 2]}}]\n"
GIB = 2**30


class Plot(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def run_program(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], cwd=self.path, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def drawn(self, *words, kind=None):
        """The result of a command, and the marks of its picture: (name, value, words)."""
        self.run_program(*words, "--format", "json", "-o", "result.json")
        self.run_program("plot", "result.json", *(["--kind", kind] if kind else []), "-o", "x.svg")
        root = xml.etree.ElementTree.parse(self.path / "x.svg").getroot()
        space = "{http://www.w3.org/2000/svg}"
        self.assertEqual(root.tag, space + "svg")
        for one in root.iter():
            for side in ("width", "height"):
                self.assertGreaterEqual(float(one.get(side, 0)), 0)
        marks = [(one.get("data-name"), float(one.get("data-value")), one.find(space + "title").text)
                 for one in root.iter() if one.get("data-name") not in (None, "key")]
        return json.loads((self.path / "result.json").read_text()), marks

    def test_waterfall(self):
        result, marks = self.drawn("simulate", STUDY)
        shares = {name: value for name, value, _ in marks}
        step = result["step"]["time_s"]
        for key, name in (("tp_comm", "tensor communication"), ("pipeline_bubble", "pipeline bubble"),
                          ("optimizer", "optimizer")):
            self.assertAlmostEqual(shares[name], result["breakdown_s"][key] / step, 9)
        self.assertAlmostEqual(shares["model FLOPs (MFU)"], result["throughput"]["mfu"], 9)
        self.assertAlmostEqual(sum(shares.values()) - shares["peak of the devices"], 1, 6)

    def test_memory(self):
        result, marks = self.drawn("simulate", STUDY, kind="memory")
        self.assertEqual(len(marks), 5 * len(result["classes"]))
        for one in result["classes"]:
            for kind, amount in one["memory"]["by_kind_bytes"].items():
                self.assertIn((f"{one['role']}, {kind}", round(amount / GIB, 6)),
                              [(name, round(value, 6)) for name, value, _ in marks])

    def test_sensitivity(self):
        result, marks = self.drawn("simulate", SMALL, "--sensitivity", kind="sensitivity")
        self.assertEqual(len(marks), len(result["sensitivities"]))
        least = min(one["time_s_at_10_percent_more"] for one in result["sensitivities"])
        self.assertAlmostEqual(marks[0][1], 1 - least / result["step"]["time_s"], 9)

    def test_pareto_of_a_search(self):
        result, marks = self.drawn("search", SMALL, "--level", "0", "--simulate", "4", "--certify", "0")
        times = {round(value, 9) for _, value, _ in marks}
        self.assertEqual(times, {round(one["time_s"], 9) for one in [*result["front"], *result["best"]]
                                 if one["time_s"] is not None})

    def test_memory_of_a_search(self):
        result, marks = self.drawn("search", SMALL, "--level", "0", "--simulate", "4", "--certify", "0",
                                   kind="memory")
        self.assertTrue(marks)
        for one in result["best"]:
            self.assertIn(one["words"], [name for name, _, _ in marks])

    def test_pareto_of_a_study(self):
        (self.path / "sweep.yaml").write_text(SWEEP)
        result, marks = self.drawn("study", "sweep.yaml")
        days = sorted(round(one["whole"]["time_s"] / 86400, 9) for one in result["results"])
        self.assertEqual(sorted(round(value, 9) for _, value, _ in marks), days)

    def test_without_a_price_is_said(self):
        _, marks = self.drawn("search", SMALL, "--level", "0", "--simulate", "2", "--certify", "0",
                              "--set", "cluster.node.device=MI325X")
        self.assertTrue(all(words.endswith("without a price") for _, _, words in marks), marks)

    def test_curve(self):
        result, marks = self.drawn("topology", "collectives", "two-dgx-h100", "--ranks", "0-15",
                                   "--sizes", "1MiB,64MiB,1GiB")
        self.assertEqual([round(value, 6) for _, value, _ in marks],
                         [round(row["busbw_bytes_per_s"] / 1e9, 6) for row in result["rows"]])

    def test_a_foreign_file_is_refused(self):
        (self.path / "x.json").write_text('{"a": 1}')
        said = self.run_program("plot", "x.json", "-o", "x.svg", code=2).stderr
        self.assertEqual(said, "error: x.json: it is no result of foreshard: write one with --format json\n")
        self.assertFalse((self.path / "x.svg").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
