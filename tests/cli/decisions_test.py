#!/usr/bin/env python3
"""What decides is said with what it rests on: every command that ranks, prices or explains a step says what of it
nobody measured, options without a price are named first, and what was found can be typed again.

    decisions_test.py PROGRAM SOURCE BUILD [Class.test...]
"""

import csv
import io
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]
# So large that kernels, not hosts, take most of the step.
MODEL = "{name: small, layers: 8, hidden: 4096, heads: 32, vocabulary: 32000, sequence: 4096}"
# The devices of the first are in no table of measurements, those of the second are.
UNMEASURED, MEASURED = "MI325X", "A100"


def study_of(node, more="", nodes=1):
    return (f"cluster: {{name: box, nodes: {nodes}, node: {node}, fabric: {{kind: single-switch}}}}\nmodel: {MODEL}\n"
            f"strategy: {{data_parallel: {8 * nodes}, global_batch: 64, framework: megatron-lm}}\n{more}")


def paragraph(text):
    """The lines before the first empty one, as one."""
    return " ".join(text.split("\n\n")[0].split())


class Folder(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.home.name)
        self.write("new.yaml", study_of("mi325x-8gpu", "train: 1B tokens\n"))
        self.write("new2.yaml", study_of("mi325x-8gpu", "train: 1B tokens\n", nodes=2))
        self.write("known.yaml", study_of("dgx-a100-80gb", "train: 1B tokens\n"))

    def tearDown(self):
        self.home.cleanup()

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def run_it(self, *arguments, codes=(0,)):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder,
                              stdin=subprocess.DEVNULL)
        self.assertIn(done.returncode, codes, f"foreshard {arguments}\n{done.stdout}{done.stderr}")
        return done.stdout

    def json_of(self, *arguments, codes=(0,)):
        return json.loads(self.run_it(*arguments, "--format", "json", codes=codes))

    def rows_of(self, *arguments, codes=(0,)):
        return list(csv.DictReader(io.StringIO(self.run_it(*arguments, "--format", "csv", codes=codes))))

    def search(self, study, name="found.json", more=("--level", "1", "--simulate", "4", "--certify", "0")):
        self.run_it("search", study, *more, "--format", "json", "-o", name)
        return json.loads((self.folder / name).read_text())

    def unmeasured(self, text):
        words = " ".join(text.split())
        self.assertRegex(words, r"\d+ % of the step.* rests? on parameters that were not measured on its devices")
        self.assertIn(UNMEASURED, words)

    def evidence(self, one):
        self.assertGreater(one["unmeasured_share"], 0.5)
        self.assertIn(UNMEASURED, one["unmeasured_on"])
        self.unmeasured(one["remarks"][0])


class Evidence(Folder):
    """One test a command."""

    def test_simulate(self):
        self.unmeasured(self.run_it("simulate", "new.yaml"))
        self.evidence(self.json_of("simulate", "new.yaml")["step"]["evidence"])
        row = self.rows_of("simulate", "new.yaml")[0]
        self.assertGreater(float(row["unmeasured_share"]), 0.5)
        self.unmeasured(row["evidence"])
        self.assertNotIn("not measured", self.run_it("simulate", "known.yaml"))
        self.assertLess(self.json_of("simulate", "known.yaml")["step"]["evidence"]["unmeasured_share"], 0.5)

    def test_search(self):
        few = ("search", "new.yaml", "--level", "0", "--simulate", "3", "--certify", "0")
        text = self.run_it(*few)
        self.unmeasured(text)
        self.assertLess(text.index(UNMEASURED + " ("), text.index("headroom"))
        for one in self.json_of(*few)["best"]:
            self.evidence(one["evidence"])
            self.assertLess(one["low_s"], one["time_s"])
        for row in self.rows_of(*few):
            self.assertGreater(float(row["unmeasured_share"]), 0.5)
            self.unmeasured(row["evidence"])

    def test_advise(self):
        self.unmeasured(self.run_it("advise", "new.yaml"))
        result = self.json_of("advise", "new.yaml")
        self.evidence(result["now"]["evidence"])
        for one in result["changes"]:
            self.evidence(one["after"]["evidence"])

    def test_study(self):
        self.write("sweep.yaml", "study: new.yaml\nrank: usd\nset: {cluster.rent: 2 USD/h}\naxes:\n  - {key: cluster.node, values: [mi325x-8gpu,"
                   " dgx-a100-80gb]}\n  - {key: strategy.micro_batch, values: [1, 2]}\n")
        text = self.run_it("study", "sweep.yaml")
        first = paragraph(text)
        self.unmeasured(first)
        self.assertIn("2 of 4 points", first)
        result = self.json_of("study", "sweep.yaml")
        self.unmeasured(result["evidence"][0])
        of_new = [one for one in result["results"] if one["axes"]["node"] == "mi325x-8gpu"]
        self.assertEqual(len(of_new), 2)
        for one in of_new:
            self.evidence(one["step"]["evidence"])
            whole = one["whole"]
            self.assertLess(whole["usd_low"], whole["usd"])
            self.assertAlmostEqual(whole["usd_high"] / whole["usd"], whole["high_s"] / whole["time_s"])
        for row in self.rows_of("study", "sweep.yaml"):
            self.assertEqual(float(row["unmeasured_share"]) > 0.5, row["node"] == "mi325x-8gpu")
        # Each time of the table has its interval beside it.
        table = [line for line in text.splitlines() if " to " in line and "point" not in line and "!" not in line]
        self.assertGreaterEqual(len(table), 4)

    def test_compare(self):
        compare = ("compare", "known.yaml", "--set-b", "cluster.node=mi325x-8gpu")
        self.unmeasured(self.run_it(*compare))
        result = self.json_of(*compare)
        self.evidence(result["b"]["evidence"])
        self.assertLess(result["b"]["low_s"], result["b"]["high_s"])
        self.assertLess(result["a"]["evidence"]["unmeasured_share"], 0.5)
        # A step is beside itself: no machine tells the two apart.
        self.assertTrue(self.json_of("compare", "known.yaml", "known.yaml")["intervals_overlap"])
        self.assertIn("overlap", self.run_it("compare", "known.yaml", "known.yaml"))

    def test_compare_of_sweeps(self):
        self.write("sweep.yaml", "study: new.yaml\naxes: [{key: strategy.micro_batch, values: [1, 2]}]\n")
        self.run_it("study", "sweep.yaml", "--format", "json", "-o", "a.json")
        self.unmeasured(self.run_it("compare", "a.json", "a.json"))
        result = self.json_of("compare", "a.json", "a.json")
        self.evidence(result["pairs"][0]["a"]["evidence"])
        self.assertTrue(result["pairs"][0]["intervals_overlap"])

    def test_explain(self):
        self.search("new.yaml")
        self.unmeasured(self.run_it("explain", "found.json"))
        self.evidence(self.json_of("explain", "found.json")["first"]["evidence"])

    def test_replan(self):
        change = ("replan", "new2.yaml", "--down", "node1", "--level", "0", "--simulate", "1", "--certify", "0")
        text = self.run_it(*change)
        self.unmeasured(text)
        result = self.json_of(*change)
        for side in ("before", "after"):
            self.evidence(result[side]["evidence"])

    def test_elastic(self):
        self.write("line.yaml", "study: new2.yaml\ndetection: 1 min\nrestart: 1 min\nfailures: {causes: [{name: node,"
                   " of: node, mtbf: 20 h, repair: 10 min}]}\ncheckpoint: {storage: 10 GB/s}\npolicies: [wait]\n"
                   "histories: 2\n")
        self.unmeasured(self.run_it("elastic", "line.yaml"))
        result = self.json_of("elastic", "line.yaml")
        self.unmeasured(result["evidence"][0])
        self.assertLess(result["low_s"], result["step_s"])


class Prices(Folder):
    """Of two machines, the faster one has no price."""
    SWEEP = ("study: known.yaml\ngoal: {train: 1B tokens, minimise: usd}\naxes:\n  - name: machine\n    choices:\n"
             "      - {name: old, set: {cluster.node: dgx-a100-80gb}}\n"
             "      - {name: new, set: {cluster.node: dgx-b200%s}}\n")

    def test_without_a_price_an_option_is_named_first(self):
        self.write("sweep.yaml", self.SWEEP % "")
        first = paragraph(self.run_it("study", "sweep.yaml"))
        self.assertTrue(first.startswith("! 1 of 2 points has no price"), first)
        for words in ("machine new", "cluster.rent", "B200"):
            self.assertIn(words, first)
        result = self.json_of("study", "sweep.yaml")
        self.assertEqual(result["left_out"]["unknown"], [1])
        self.assertEqual(result["left_out"]["off_front"], [1])
        self.assertEqual(result["left_out"]["devices"], ["B200"])
        self.assertIn("cluster.rent", result["left_out"]["remedy"])
        self.assertEqual(result["results"][1]["step"]["without_price"], ["B200"])

    def test_the_price_below_which_it_wins(self):
        self.write("sweep.yaml", self.SWEEP % "")
        remedy = self.json_of("study", "sweep.yaml")["left_out"]["remedy"]
        limit = float(remedy.split("less than ")[-1].split(" USD/h")[0])
        for factor, winner in ((0.98, "machine new"), (1.02, "machine old")):
            self.write("sweep.yaml", self.SWEEP % f", cluster.rent: {limit * factor} USD/h")
            text = self.run_it("study", "sweep.yaml")
            self.assertIn(f"The answer: {winner}", text)
            self.assertFalse(text.startswith("!") and "no price" in paragraph(text))

    def test_ranked_by_time_the_front_says_what_it_leaves_out(self):
        self.write("sweep.yaml", (self.SWEEP % "").replace("goal: {train: 1B tokens, minimise: usd}\n", "rank: time\n"))
        self.assertIn("1 point without a price is left out", self.run_it("study", "sweep.yaml"))


class Repeated(Folder):
    def test_a_row_of_a_study(self):
        # 9 layers do not divide into 4 stages: the words have to say the cut.
        self.write("sweep.yaml", "study: known.yaml\nset: {model.layers: 9}\naxes:\n"
                   "  - {key: strategy.global_batch, values: [32, 64]}\n"
                   "  - {name: network, choices: [{name: '1.5', set: {cluster.rent: 1 USD/h}},"
                   " {name: '1', set: {cluster.rent: 2 USD/h}}]}\n"
                   "search: {space: {level: 1, pipeline_parallel: [4]}, simulate: 2, certify: 0}\n")
        result = self.json_of("study", "sweep.yaml")
        self.assertEqual(len(result["results"]), 4)
        for one in result["results"]:
            words = shlex.split(one["command"])
            self.assertEqual(words[:2], ["foreshard", "simulate"])
            step = self.json_of(*words[1:])
            self.assertEqual(step["step"]["time_s"], one["step"]["time_s"])
            self.assertEqual(step["cost"]["usd_per_step"], one["step"]["usd"])
            self.assertRegex(one["strategy"], r"layers \d+( \d+)+")  # nine layers do not divide
        text = self.run_it("study", "sweep.yaml")
        first = result["results"][result["ranked"][0]]
        self.assertIn(first["command"], text)

    def test_what_a_search_found(self):
        found = self.search("known.yaml")
        for number, name in ((1, "found.json"), (1, "found.json#1"), (2, "found.json#2")):
            step = self.json_of("simulate", name)["step"]
            self.assertEqual(step["time_s"], found["best"][number - 1]["time_s"])
        sides = self.json_of("compare", "found.json", "found.json#2")
        self.assertEqual(sides["results"][0]["a"], found["best"][0]["time_s"])
        self.assertEqual(sides["results"][0]["b"], found["best"][1]["time_s"])
        third = self.json_of("explain", "found.json#3")
        self.assertEqual(third["second_number"], 3)
        self.assertEqual(third["second"]["words"], found["best"][2]["words"])
        # What is set behind it counts.
        batch = self.json_of("simulate", "found.json", "--set", "strategy.global_batch=128")["step"]
        self.assertGreater(batch["time_s"], found["best"][0]["time_s"])

    def test_what_a_search_did_not_find(self):
        self.search("known.yaml")
        done = subprocess.run([PROGRAM, "simulate", "found.json#99"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("search with --top 99", done.stderr)
        self.write("known.yaml", study_of("dgx-h100", "train: 1B tokens\n"))
        done = subprocess.run([PROGRAM, "simulate", "found.json"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("its cluster is not what it was", done.stderr)

    def test_every_winner_exports_to_its_framework(self):
        for framework, form in (("megatron-lm", "megatron"), ("torchtitan", "torchtitan"),
                                ("deepspeed-zero3", "deepspeed"), ("pytorch-fsdp", "accelerate")):
            self.write("study.yaml", study_of("dgx-a100-80gb").replace("megatron-lm", framework))
            for level in ("1", "3"):
                found = self.search("study.yaml", more=("--level", level, "--simulate", "6", "--certify", "0", "--front",
                                                        "2", "--set", "model.layers=9"))
                for number, one in enumerate(found["best"], 1):
                    self.assertEqual(one["framework_cannot"], [], one["words"])
                    self.run_it("export", f"found.json#{number}", "--as", form)

    def test_any_framework_is_asked_for(self):
        space = ("--level", "1", "--simulate", "40", "--certify", "0", "--front", "0")
        zero = {one["strategy"]["zero_stage"] for one in self.search("known.yaml", more=space)["best"]}
        self.assertLessEqual(zero, {0, 1})
        any_of = self.search("known.yaml", more=(*space, "--any-framework", "--top", "40"))["best"]
        self.assertIn("zero_stage", {cannot["key"] for one in any_of for cannot in one["framework_cannot"]})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
