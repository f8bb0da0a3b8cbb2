#!/usr/bin/env python3
"""tools/readme-sample on pages of its own, with a program that prints what the test says.

    readme_sample_test.py SOURCE
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(sys.argv[1]) / "tools/readme-sample"
RESULT = {"results": [{"axes": {"devices": "8", "layers": "bf16"}, "whole": {"time_s": 4147200.0}},
                      {"axes": {"devices": "16,384", "layers": "bf16"}, "step": {"mfu": 0.40249}}]}
SCHEMA = {"allOf": [{"$ref": "#/definitions/strategy"}], "definitions": {
    "strategy": {"description": "How a step is divided.", "anyOf": [{"required": ["batch"]}, {"required": ["extends"]}],
                 "properties": {"batch": {"type": "integer", "description": "Sequences | step."},
                                "recompute": {"enum": ["none", "full"], "default": "none",
                                              "description": "What is recomputed.\n- none: Nothing.\n- full: All."},
                                "optimizer": {"allOf": [{"$ref": "#/definitions/optimizer"}], "description": "Updates."}}},
    "optimizer": {"description": "An optimizer.", "properties": {"rule": {"type": "string", "description": "Its name."}}}}}
KEYS = """
### strategy

How a step is divided.

| key | value | default | meaning |
| --- | --- | --- | --- |
| `batch` | a whole number | required | Sequences \\| step. |
| `recompute` | one of `none`, `full` | `none` | What is recomputed.<br>`none`: Nothing.<br>`full`: All. |
| `optimizer` | [optimizer](#optimizer) |  | Updates. |

### optimizer

An optimizer.

| key | value | default | meaning |
| --- | --- | --- | --- |
| `rule` | a text |  | Its name. |

"""
FIGURE = "<!-- FIGURE `./run study big` {} -->{}<!-- END -->"


class ReadmeSample(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.home.name)
        (self.root / "docs").mkdir()
        program = self.root / "program"
        program.write_text("#!/bin/sh\ncase \"$*\" in\n  *json) cat <<'END'\n" + json.dumps(RESULT)
                           + "\nEND\n;;\n  schema*) cat <<'END'\n" + json.dumps(SCHEMA)
                           + "\nEND\n;;\n  long) printf 'a\\n  b 1\\n    c 2\\n  d 3\\n  b 4\\n';;\n  *) echo \"a table of $*\";;\nesac\n")
        program.chmod(0o755)

    def tearDown(self):
        self.home.cleanup()

    def tool(self, *arguments):
        return subprocess.run([sys.executable, TOOL, "--root", self.root, "--program", self.root / "program", *arguments],
                              capture_output=True, text=True)

    def page(self, days, mfu, sample):
        return ("It took " + FIGURE.format("/results[0]/whole/time_s d .1f", days) + " days at "
                + FIGURE.format("/results[devices=16,384, layers=bf16]/step/mfu % .1f", mfu) + " %.\n"
                "<!-- SAMPLE OUTPUT of `./run study big --top 4`, written by tools/readme-sample -->\n" + sample
                + "<!-- SAMPLE OUTPUT END -->\n")

    def test_rewrites_and_checks_figures_in_sentences(self):
        stale = self.page("51.2", "42.2", "```\nold\n```\n")
        # 4,147,200 s are 48 days; 0.40249 is 40.2 %.
        right = self.page("48.0", "40.2", "```\na table of study big --top 4\n```\n")
        for name in ("README.md", "docs/a.md"):
            (self.root / name).write_text(stale)
        checked = self.tool("--check")
        self.assertEqual(checked.returncode, 1)
        self.assertIn("README.md: `./run study big` prints 48.0, not 51.2", checked.stdout)
        self.assertIn("prints 40.2, not 42.2", checked.stdout)
        self.assertEqual((self.root / "README.md").read_text(), stale)
        self.assertEqual(self.tool("--rewrite").returncode, 0)
        for name in ("README.md", "docs/a.md"):
            self.assertEqual((self.root / name).read_text(), right)
        self.assertEqual(self.tool("--check").returncode, 0)

    def rewritten(self, text):
        (self.root / "README.md").write_text(text)
        done = self.tool("--rewrite")
        return done.returncode, done.stderr, (self.root / "README.md").read_text()

    def test_takes_a_part_of_a_sample(self):
        mark = "<!-- SAMPLE OUTPUT of `./run long`, from `{}` to `{}`, written by tools/readme-sample -->\n{}<!-- SAMPLE OUTPUT END -->\n"
        code, _, page = self.rewritten(mark.format("b", "d", "old\n"))
        self.assertEqual((code, page), (0, mark.format("b", "d", "```\nb 1\n  c 2\nd 3\n```\n")))
        for first, last, why in (("x", "d", "no line has `x`"), ("c", "a", "behind `c` no line has `a`")):
            code, said, _ = self.rewritten(mark.format(first, last, ""))
            self.assertEqual(code, 1)
            self.assertIn(why, said)

    def test_writes_the_keys_of_a_kind_of_file(self):
        mark = "<!-- KEYS of `./run schema strategy`, written by tools/readme-sample -->\n{}<!-- KEYS END -->\n"
        code, said, page = self.rewritten(mark.format("old\n"))
        self.assertEqual((code, said), (0, ""))
        self.assertEqual(page, mark.format(KEYS))
        self.assertEqual(self.tool("--check").returncode, 0)

    def test_says_what_a_path_does_not_find(self):
        (self.root / "README.md").write_text(FIGURE.format("/results[devices=9]/whole/time_s d .1f", "1"))
        done = self.tool("--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no entry has [devices=9]", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
