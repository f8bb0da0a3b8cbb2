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
DAY = 86400
ELASTIC = f"""study: {SMALL}
set: {{cluster.nodes: 2, cluster.fabric: {{kind: single-switch}}, strategy.data_parallel: 4}}
train: 1B tokens
detection: 1 min
restart: 1 min
failures: {{causes: [{{name: node, of: node, mtbf: 20 min, repair: 10 min}}]}}
checkpoint: {{storage: 10 GB/s}}
policies: [wait, replace]
spares: 1
histories: 20
"""
# Measured steps, made up for this test: ids of their own, so that marks can be told apart.
HEAD = ("id,source,source_url_or_repo_path,framework,gpu,gpu_mem_gb,num_gpus,gpus_per_node,internode_gbps_per_gpu,"
        "model_name,params_b,layers,hidden,heads,kv_heads,ffn,vocab,seq,experts,topk,tp,pp,vpp,cp,dp,ep,zero_stage,"
        "mbs,gbs,recompute,seq_parallel,precision,metric,value,unit,notes\n")
ROW = ("{},made up,,Megatron-LM,A100,80,64,8,200,GPT-3.6B,,30,3072,32,32,12288,51200,2048,,,2,2,1,,16,,1,4,512,full,"
       "False,fp16,{},{},{},\n")


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
        return json.loads((self.path / "result.json").read_text()), self.marks()

    def marks(self):
        root = xml.etree.ElementTree.parse(self.path / "x.svg").getroot()
        space = "{http://www.w3.org/2000/svg}"
        self.assertEqual(root.tag, space + "svg")
        for one in root.iter():
            for side in ("width", "height"):
                self.assertGreaterEqual(float(one.get(side, 0)), 0)
        return [(one.get("data-name"), float(one.get("data-value")), one.find(space + "title").text)
                for one in root.iter() if one.get("data-name") not in (None, "key")]

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

    def test_days_and_goodput_of_runs_that_fail(self):
        (self.path / "line.yaml").write_text(ELASTIC)
        result, marks = self.drawn("elastic", "line.yaml")
        of = {policy["policy"]: policy for policy in result["policies"]}
        self.assertEqual(len(marks), 3 * len(of))
        for name, days, _ in marks:
            policy, mark = name.removesuffix(" of time").split(", ")
            self.assertAlmostEqual(days, of[policy]["time_s"][mark] / DAY, 12)
            times = of[policy]["times_s_at_least"]
            self.assertEqual(times, sorted(times))
            self.assertEqual(len(times), result["histories"])
            self.assertAlmostEqual(sum(times) / len(times), of[policy]["time_s"]["mean"], 6)
        self.run_program("plot", "result.json", "--kind", "goodput", "-o", "x.svg")
        for name, share, _ in self.marks():
            policy, mark = name.removesuffix(" of time").split(", ")
            self.assertAlmostEqual(share, 100 * result["ideal_s"] / of[policy]["time_s"][mark], 9)
        self.hold_page(result["policies"][0]["policy"], "10th percentile")

    def test_accuracy(self):
        for table, rows in (("one", [ROW.format("a-1", "step_time", 9, "s"), ROW.format("a-2", "step_time", 12, "s")]),
                            ("two", [ROW.format("b-1", "step_time", 11, "s"),
                                     ROW.format("b-2", "peak_memory", 30, "GB")])):
            (self.path / f"{table}.csv").write_text(HEAD + "".join(rows))
        result, marks = self.drawn("accuracy", "one.csv", "two.csv")
        rows = {row["id"]: row for row in result["rows"]}
        self.assertEqual({name for name, _, _ in marks}, {"a-1", "a-2", "b-1"})
        for name, seconds, words in marks:
            self.assertAlmostEqual(seconds, rows[name]["predicted"], 9)
            self.assertIn(f"measured {rows[name]['measured']:.4g}", words)
            self.assertIn(f"({rows[name]['low']:.4g} to {rows[name]['high']:.4g})", words)
        self.hold_page("one.csv", "mean error")

    def test_two_predictions_side_by_side(self):
        result, marks = self.drawn("compare", SMALL, SMALL, "--set-b", "strategy.micro_batch=1")
        parts = {term["part"]: term for term in result["terms"] if term["a_s"] or term["b_s"]}
        self.assertEqual(len(marks), 2 * len(parts))
        for name, seconds, _ in marks:
            side, part = name.split(", ")
            self.assertAlmostEqual(seconds, parts[part][f"{side.lower()}_s"], 9)
        self.hold_page("micro_batch", "B is")

    def test_a_measured_step(self):
        self.run_program("replay", "host-dp2", "--host", "--as-rank", "1", "--repeats", "1", "-o", "measured.json")
        result, marks = self.drawn("compare", "host-dp2", "measured.json")
        self.assertEqual(len(marks), 2 * 5)
        for name, milliseconds, _ in marks:
            side, kind = name.split(", ")
            booked = sum(row["booked"][f"{side}_s"] or 0 for row in result["kinds"] if row["kind"] == kind)
            self.assertAlmostEqual(milliseconds, 1e3 * booked, 6)
        for side in ("predicted", "measured"):
            whole = sum(milliseconds for name, milliseconds, _ in marks if name.startswith(side))
            self.assertAlmostEqual(whole, 1e3 * result["step"][f"{side}_s"], 3)
        self.run_program("plot", "result.json", "--kind", "tasks", "-o", "x.svg")
        tasks = [(name, round(value, 6)) for name, value, _ in self.marks()]
        self.assertTrue(tasks)
        for row in result["residuals"]:
            if row["each"]["predicted_s"] and row["each"]["measured_s"]:
                self.assertIn((row["name"], round(1e3 * row["each"]["predicted_s"], 6)), tasks)
        self.hold_page("predicted and measured", "kernel")

    def hold_page(self, *words):
        """The page of the last result has its pictures, and a table with these words."""
        self.run_program("report", "result.json", "-o", "page.html")
        text = (self.path / "page.html").read_text()
        self.assertIn("<svg", text)
        for word in words:
            self.assertIn(word, text)

    def test_a_foreign_file_is_refused(self):
        (self.path / "x.json").write_text('{"a": 1}')
        said = self.run_program("plot", "x.json", "-o", "x.svg", code=2).stderr
        self.assertEqual(said, "error: x.json: it is no result of foreshard: write one with --format json\n")
        self.assertFalse((self.path / "x.svg").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
