#!/usr/bin/env python3
"""One node of sixteen fails: what `foreshard replan` says is what `search` and `reshard` say, one after
the other, by hand; and what cannot be known is called so.

    replan_test.py PROGRAM SOURCE BUILD [Class.test...]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]
STUDY = "llama2-70b-h100-128"
# Few simulations, so that the test is quick; both commands get the same.
LEVEL = "1" if os.environ.get("FORESHARD_ALL_SEEDS") else "0"
SPACE = ("--level", LEVEL, "--simulate", "4", "--certify", "0")
# Every data-parallel rank has all of the optimizer's state: nothing is lost with one of them.
WHOLE = ("--set", "strategy.zero_stage=0")


def foreshard(*arguments, codes=(0,)):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    assert done.returncode in codes, f"foreshard {arguments}: {done.returncode}\n{done.stderr}"
    return done


def result(*arguments, codes=(0,)):
    return json.loads(foreshard(*arguments, "--format", "json", codes=codes).stdout)


class Replan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.replan = result("replan", STUDY, *WHOLE, "--down", "node3", *SPACE)

    def reshard(self, before, after, *more, codes=(0,)):
        """By hand: strategies as files, node 3's devices down, in the cluster as it is then."""
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for name, strategy in (("before", before), ("after", after)):
                files.append(pathlib.Path(folder) / f"{name}.yaml")
                files[-1].write_text(json.dumps({**strategy, "framework": "megatron-lm"}))
            study = pathlib.Path(folder) / "cluster.yaml"
            study.write_text("name: sixteen-dgx-h100\nnodes: 16\nnode: dgx-h100\n"
                             "fabric: {kind: rail-fat-tree, levels: 2, nodes_per_pod: 16}\n")
            return foreshard("reshard", "--from-strategy", files[0], "--to-strategy", files[1], "--model",
                             "llama2-70b", "--cluster", study, "--to-cluster", study, "--set",
                             "to_cluster.down=[node3]", "--down", "24-31", "--format", "json",
                             codes=codes)

    def test_the_strategy_is_that_of_the_search(self):
        found = result("search", STUDY, *WHOLE, "--set", "cluster.down=[node3]", *SPACE)
        best = found["best"][0]
        self.assertEqual(self.replan["after"]["strategy"], best["strategy"])
        self.assertEqual(self.replan["after"]["step_s"], best["time_s"])
        self.assertEqual(self.replan["after"]["use"], best["use"])
        self.assertFalse(self.replan["kept"])

    def test_bytes_and_seconds_are_those_of_reshard(self):
        self.assertEqual(self.replan["failed"], list(range(24, 32)))
        by_hand = json.loads(self.reshard(self.replan["before"]["strategy"],
                                          self.replan["after"]["strategy"]).stdout)
        self.assertGreater(by_hand["bytes_moved"], 0)
        self.assertEqual(self.replan["bytes"], by_hand["bytes_moved"])
        self.assertEqual(self.replan["slices_s"], by_hand["simulated_s"])
        self.assertEqual(self.replan["lost_bytes"], 0)
        self.assertFalse(self.replan["from_checkpoint"])

    def test_what_nobody_told_is_unknown(self):
        self.assertIsNone(self.replan["stall_s"])
        text = foreshard("replan", STUDY, *WHOLE, "--down", "node3", *SPACE).stdout
        self.assertIn("UNKNOWN: no study tells it; give --detection, --restart", text)
        told = result("replan", STUDY, *WHOLE, "--down", "node3", *SPACE, "--detection", "2 min",
                      "--restart", "5 min")
        self.assertAlmostEqual(told["stall_s"], 420 + self.replan["slices_s"])

    def test_what_is_lost_comes_from_the_checkpoint(self):
        """With ZeRO 1 each rank alone has its part of the optimizer's state."""
        lost = result("replan", STUDY, "--down", "node3", *SPACE, "--storage", "100 GB/s", "--restart",
                      "1 min", "--detection", "1 min")
        self.assertTrue(lost["from_checkpoint"])
        # Master copy and two moments of 32 bits, of a quarter of a fourth of the model: one stage of
        # four of one replica of four.
        self.assertAlmostEqual(lost["lost_bytes"] / (12 * 68.98e9 / 16), 1, delta=0.02)
        # 14 bytes of a parameter; all ranks read: two each for its replicas, 12 once.
        replicas = lost["after"]["strategy"]["data_parallel"]
        self.assertAlmostEqual(lost["bytes"] / ((12 + 2 * replicas) * 68.98e9), 1, delta=0.02)
        self.assertAlmostEqual(lost["checkpoint_bytes"] / (14 * 68.98e9), 1, delta=0.001)
        self.assertAlmostEqual(lost["stall_s"], 120 + lost["bytes"] / 100e9)
        done = self.reshard(lost["before"]["strategy"], lost["after"]["strategy"], codes=(3,))
        self.assertIn("go back to a checkpoint", done.stderr)

    def test_the_old_strategy_is_kept_where_it_fits(self):
        more = result("replan", STUDY, "--set-after", "cluster.nodes=17", "--keep", "--restart", "1 min")
        self.assertTrue(more["kept"])
        self.assertEqual((more["added"], more["bytes"], more["stall_s"]), (8, 0, 60))
        self.assertEqual(more["after"]["strategy"], more["before"]["strategy"])
        fewer = result("replan", STUDY, "--down", "node3/gpu5", "--keep", *SPACE)
        self.assertFalse(fewer["kept"])
        self.assertIn("127 devices", fewer["not_kept"])

    # A value of the strategy afterwards is one that the search keeps.
    def test_values_of_the_strategy_are_kept(self):
        for level in "0", "1":
            done = result("replan", STUDY, "--down", "node3", "--set-after", "strategy.tensor_parallel=4",
                          "--set-after", "strategy.micro_batch=2", "--level", level, "--simulate", "2", "--certify", "0")
            after = done["after"]["strategy"]
            self.assertEqual((after["tensor_parallel"], after["micro_batch"]), (4, 2))

    def test_two_studies(self):
        with tempfile.TemporaryDirectory() as folder:
            after = pathlib.Path(folder) / "after.yaml"
            after.write_text(
                "cluster: {name: fifteen, nodes: 15, node: dgx-h100,\n"
                "          fabric: {kind: rail-fat-tree, levels: 2, nodes_per_pod: 16}}\n"
                "model: llama2-70b\nstrategy: {global_batch: 128, framework: megatron-lm}\n")
            smaller = result("replan", STUDY, after, *SPACE)
        # Devices that are taken away still send: nothing is lost.
        self.assertEqual((smaller["removed"], smaller["failed"]), (8, []))
        self.assertFalse(smaller["from_checkpoint"])
        self.assertGreater(smaller["bytes"], 0)

    # Where sequences are split, the estimate of memory is not exact: what may fit is simulated.
    def test_what_was_simulated_does_not_fit(self):
        with tempfile.TemporaryDirectory() as folder:
            space = pathlib.Path(folder) / "space.yaml"
            space.write_text("context_parallel: [2]\n")
            done = foreshard("replan", "--cluster", "{name: mix, groups: [{nodes: 1, node: dgx-a100-80gb}, "
                             "{nodes: 1, node: dgx-h100}], fabric: {kind: single-switch}}", "--model",
                             "llama2-7b", "--strategy", "{tensor_parallel: 8, data_parallel: 2, "
                             "global_batch: 64, framework: megatron-lm}", "--down", "node1", "--level", "0",
                             "--simulate", "1", "--certify", "0", "--set", "memory_margin=0", "--space", space,
                             codes=(3,))
        self.assertIn("1.63 GiB more than the 78.9 GiB that a device there has for it; 35 more might",
                      done.stderr)

    def test_bad_input(self):
        for arguments, message in (
                ((STUDY,), "nothing changes"),
                ((STUDY, "--down", "node16"), "--down node16: error: 'node16' matches no device"),
                ((STUDY, "gpt3-175b-a100-1024"), "the model changes, from Llama 2 70B to GPT-3 175B"),
                ((STUDY, STUDY, "--down", "node3"), "--down is of the study itself"),
                ((STUDY, "--down", "node3", "--restart", "5"), "--restart: '5' has no unit"),
                ((STUDY, "--set-after", "strategy={global_batch: 128}"),
                 "set the values that it shall have one by one"),
                ((STUDY, "--set-after", "strategy.recompute_layers=3"),
                 "--set-after strategy.recompute_layers: a search decides it itself"),
                ((STUDY, "--set-after", "strategy.micro_batch=2", "--keep"), "--keep keeps the old strategy"),
                ((STUDY, "--down", "node3", "--storage", "0 GB/s"), "--storage: must be positive"),
                (("conv-block",), "conv-block")):
            done = foreshard("replan", *arguments, codes=(2,))
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stdout, "")
        done = foreshard("replan", STUDY, "--set-after", "cluster.nodes=1", *SPACE, codes=(3,))
        self.assertIn("no strategy fits sixteen-dgx-h100 after the change", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
