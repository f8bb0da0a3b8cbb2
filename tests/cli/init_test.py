#!/usr/bin/env python3
"""`foreshard init`: what it writes passes check and simulate, from flags or from answers on a terminal; bad answers
are refused with what was meant, and no file is replaced unasked.

    init_test.py PROGRAM SOURCE BUILD [Class.test...]
"""

import json
import os
import pathlib
import pty
import select
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv[1]
SMALL = ("--model", "gpt-1.7b", "--cluster", "dgx-a100-80gb")


def foreshard(*words, folder="."):
    return subprocess.run([PROGRAM, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120)


def on_a_terminal(words, answers, folder):
    """All that a terminal shows of `foreshard init`, and its exit code."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ["TERM"] = "xterm"
        os.execv(PROGRAM, ["foreshard", "init", *words])
    os.write(terminal, answers.encode())
    shown, end = b"", time.monotonic() + 120
    try:
        while time.monotonic() < end:
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 4096)
    except OSError:  # the program has ended
        pass
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Init(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.folder = pathlib.Path(home.name)

    def written(self, *words, name="study.yaml"):
        """The study's text, after check and simulate had it."""
        done = foreshard("init", *words, "-o", name, folder=self.folder)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertEqual(foreshard("check", name, folder=self.folder).returncode, 0)
        step = foreshard("simulate", name, "--format", "json", folder=self.folder)
        self.assertEqual(step.returncode, 0, step.stderr)
        self.step = json.loads(step.stdout)
        return (self.folder / name).read_text()

    def refused(self, *words, code=2):
        done = foreshard("init", *words, folder=self.folder)
        self.assertEqual((done.returncode, done.stdout), (code, ""))
        return done.stderr

    def test_a_node_a_device_and_a_cluster(self):
        text = self.written(*SMALL)
        self.assertIn("  nodes: 1\n  node: dgx-a100-80gb\n", text)
        self.assertIn("  global_batch: 2048\n", text)  # 4M tokens in sequences of 2,048: 244 for each of 8, so 256
        self.assertIn("  data_parallel: 8\n", text)
        text = self.written("--model", "gpt-1.7b", "--cluster", "A100-SXM-80GB", "--gpus", "16", "--batch", "64",
                            "--train", "1B tokens", name="device.yaml")
        self.assertIn("  nodes: 2\n  node: by-device/A100-SXM-80GB\n", text)
        self.assertIn("  global_batch: 64\n", text)
        self.assertIn("train: 1B tokens\n", text)
        text = self.written("--model", "gpt-1.7b", "--cluster", "two-dgx-a100", name="cluster.yaml")
        self.assertIn("cluster: two-dgx-a100\n", text)

    def test_a_part_of_a_cluster(self):
        text = self.written("--model", "gpt-1.7b", "--cluster", "two-dgx-a100", "--gpus", "2", "--batch", "64")
        self.assertIn("cluster: {extends: two-dgx-a100, nodes: 1}\nuse: [node0/gpu0, node0/gpu1]\n", text)

    def test_files_are_named_from_the_folder_of_the_study(self):
        (self.folder / "mine.yaml").write_text(
            "{name: mine, layers: 4, hidden: 1024, heads: 16, vocabulary: 32000, sequence: 512}\n")
        (self.folder / "studies").mkdir()
        text = self.written("--model", "mine.yaml", "--cluster", "dgx-a100-80gb", "--batch", "64",
                            name="studies/first.yaml")
        self.assertIn('model: "../mine.yaml"\n', text)

    def test_a_model_of_hugging_face(self):
        (self.folder / "mine").mkdir()
        (self.folder / "mine/config.json").write_text(json.dumps({
            "model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16,
            "num_hidden_layers": 4, "vocab_size": 32000, "max_position_embeddings": 512}))
        self.assertIn("huggingface: {config: \"mine\"}\n",
                      self.written("--model", "mine", "--cluster", "dgx-a100-80gb", "--batch", "64"))

    def test_names_that_are_not_there(self):
        self.assertIn("did you mean 'gpt-1.7b'?", self.refused("--model", "gpt-1.7", "--cluster", "dgx-h100"))
        self.assertIn("did you mean 'dgx-h100'?", self.refused("--model", "gpt-1.7b", "--cluster", "dgx-h10"))
        self.assertIn("foreshard catalog models lists them",
                      self.refused("--model", "something-else", "--cluster", "dgx-h100"))
        self.assertIn("--model is not given, and there is no terminal to ask", self.refused("--cluster", "dgx-h100"))

    def test_numbers_that_do_not_suit(self):
        self.assertIn("give 8 or 16", self.refused(*SMALL, "--gpus", "12"))
        self.assertIn("no number of GPUs", self.refused(*SMALL, "--gpus", "many"))
        self.assertIn("at most 16384 GPUs", self.refused(*SMALL, "--gpus", "16392"))
        self.assertIn("h100-256-broken has 256 GPUs, and its fabric or its faults do not fit 16\n   help: give 256",
                      self.refused("--model", "gpt-24m", "--cluster", "h100-256-broken", "--gpus", "16"))
        self.assertIn("'4M' is no batch", self.refused(*SMALL, "--batch", "4M"))
        self.assertIn("is no batch", self.refused(*SMALL, "--batch", "0"))
        self.assertIn("no length of a training", self.refused(*SMALL, "--train", "long"))
        self.assertIn("nothing fits on so few GPUs",
                      self.refused("--model", "gpt3-175b", "--cluster", "dgx-a100-80gb", code=3))

    def test_what_cannot_be_written_is_said_first(self):
        self.assertIn("there is no folder", self.refused(*SMALL, "-o", "absent/study.yaml"))
        self.assertIn("it is a folder", self.refused(*SMALL, "-o", ".", "--force"))

    def test_no_file_is_replaced_unasked(self):
        file = self.folder / "study.yaml"
        file.write_text("mine\n")
        self.assertIn("--force", self.refused(*SMALL, "-o", "study.yaml"))
        self.assertEqual(file.read_text(), "mine\n")
        self.written(*SMALL, "--force")
        file.write_text("mine\n")
        self.refused("--model", "gpt3-175b", "--cluster", "dgx-a100-80gb", "--force", "-o", "study.yaml", code=3)
        self.assertEqual(file.read_text(), "mine\n")

    def test_questions_on_a_terminal(self):
        shown, code = on_a_terminal(("-o", "study.yaml"), "gpt-1.7\ngpt-1.7b\ndgx-a100-80gb\n\n64\n", self.folder)
        self.assertEqual(code, 0, shown)
        self.assertIn("did you mean 'gpt-1.7b'?", shown)
        self.assertIn("How many GPUs? [8]: ", shown)
        self.assertIn("  global_batch: 64\n", (self.folder / "study.yaml").read_text())
        _, code = on_a_terminal(("-o", "other.yaml"), "gpt-1.7b\n\x04", self.folder)
        self.assertEqual(code, 2)
        self.assertFalse((self.folder / "other.yaml").exists())

    def test_a_terminal_is_asked_again_where_nothing_fits(self):
        shown, code = on_a_terminal(("--model", "llama2-70b", "--cluster", "dgx-h100", "-o", "study.yaml"),
                                    "\n128\n\n", self.folder)
        self.assertIn("nothing fits on so few GPUs", shown)
        self.assertIn("How many GPUs? [16]: ", shown)
        self.assertIn(code, (0, 2), shown)  # 16 may do; else the answers are at their end


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
