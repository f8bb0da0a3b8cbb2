#!/usr/bin/env python3
"""Texts for people keep within the columns of the terminal, be they 80 or 140, and say the same in either.

    width_test.py PROGRAM SOURCE BUILD [Class.test...]
"""

import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unicodedata
import unittest

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
SMALL = "gpt-1.7b-a100-8"
SWEEP = f"""\
study: {SMALL}
train: 1B tokens
axes:
  - {{key: strategy.micro_batch, values: [1, 2]}}
  - {{key: cluster.rent, values: [1 USD/h, 2 USD/h]}}
"""
# The last lines of a text may be there to be copied: a command, or keys of a study.
COPIED = re.compile(r"\n(The first again, in full:|Of the first one, for the study:)\n.*", re.DOTALL)


def foreshard(*arguments, columns=None, codes=(0,)):
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    if columns is not None:
        environment["COLUMNS"] = str(columns)
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, env=environment,
                          stdin=subprocess.DEVNULL)
    assert done.returncode in codes, f"foreshard {arguments}: {done.returncode}\n{done.stderr}"
    return done.stdout


def columns_of(line):
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 0 if unicodedata.combining(one) else 1
               for one in line)


def letters(text):
    """All but spaces, boxes and bars, whose places depend on the width."""
    return sorted(re.sub(r"[\s│╭╰╮╯─█▏]", "", text))


def on_a_terminal(*arguments, columns, **variables):
    """What a terminal of so many columns shows."""
    child, terminal = pty.fork()
    if child == 0:
        for name in ("COLUMNS", "NO_COLOR", "LC_ALL", "LC_CTYPE", "CI"):
            os.environ.pop(name, None)
        os.environ.update({"TERM": "xterm", "LANG": "C.UTF-8", **variables})
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        os.execv(PROGRAM, [PROGRAM, *map(str, arguments)])
    shown = b""
    try:
        while part := os.read(terminal, 65536):
            shown += part
    except OSError:  # the program has ended
        pass
    os.waitpid(child, 0)
    return shown.decode()


class Terminals(unittest.TestCase):
    def test_help_is_wrapped_but_for_its_example(self):
        for columns in (80, 100, 140):
            shown = on_a_terminal("simulate", "--help", columns=columns).split("Example:")[0].splitlines()
            self.assertLessEqual(max(map(columns_of, shown)), columns)
            self.assertGreater(max(map(columns_of, shown)), columns - 25)

    def test_colours(self):
        command = ("topology", "collectives", "two-dgx-h100", "--sizes", "1MiB:1MiB")
        self.assertIn("\x1b[", on_a_terminal(*command, columns=80))
        self.assertNotIn("\x1b[", on_a_terminal(*command, "--color", "never", columns=80))
        self.assertNotIn("\x1b[", on_a_terminal(*command, columns=80, NO_COLOR="1"))
        self.assertIn("\x1b[", on_a_terminal("--color", "always", *command, columns=80, NO_COLOR="1"))
        self.assertNotIn("\x1b[", foreshard(*command))
        self.assertIn("\x1b[", foreshard(*command, "--color", "always"))

    def test_signs_where_the_locale_has_no_utf_8(self):
        shown = on_a_terminal("simulate", SMALL, columns=80, LANG="C")
        self.assertTrue(shown.isascii(), [one for one in shown if not one.isascii()][:10])
        self.assertEqual(max(columns_of(re.sub("\x1b\\[[0-9]*m", "", line)) for line in shown.splitlines()), 80)
        self.assertIn("█", on_a_terminal("simulate", SMALL, columns=80))


class Widths(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.home.name)

    def tearDown(self):
        self.home.cleanup()

    def check(self, *arguments, codes=(0,)):
        texts = {width: COPIED.sub("", foreshard(*arguments, columns=width, codes=codes)) for width in (80, 140)}
        for width, text in texts.items():
            for line in text.splitlines():
                self.assertLessEqual(columns_of(line), width, f"foreshard {arguments}\n{line}")
        self.assertEqual(letters(texts[80]), letters(texts[140]), arguments)

    def test_predictions(self):
        self.check("simulate", SMALL, "--sensitivity")
        self.check("simulate", "gpt-39.1b-a100-64-disturbed")
        self.check("simulate", SMALL, "--max-memory", "4GiB", codes=(0, 3))
        self.check("compare", SMALL, "--set-b", "strategy.recompute=full")

    def test_searches(self):
        found = self.folder / "found.json"
        foreshard("search", SMALL, "--format", "json", "-o", found)
        self.check("search", SMALL)
        self.check("explain", found)
        self.check("search", "moe-layer-h100-8", "--top", "3")

    def test_advice(self):
        self.check("advise", SMALL)

    def test_sweeps(self):
        sweep, results = self.folder / "sweep.yaml", self.folder / "results.json"
        sweep.write_text(SWEEP, encoding="utf-8")
        foreshard("study", sweep, "--format", "json", "-o", results)
        self.check("study", sweep)
        self.check("compare", results, results)

    def test_changes(self):
        self.check("replan", "llama2-70b-h100-128", "--down", "node3", "--level", "0", codes=(0, 3))
        self.check("reshard", "--tensor", "bf16[8192,53248]", "--from", "x=16 [x, -]", "--to", "x=16 [-, x]",
                   "--cluster", "two-dgx-h100")

    def test_clusters(self):
        self.check("topology", "show", "two-dgx-h100")
        self.check("topology", "check", "two-dgx-h100", "--set", "node.nics.bandwidth=4000GB/s")
        self.check("topology", "collectives", "two-dgx-h100", "--op", "all_gather", "--all")

    def test_the_catalogue(self):
        self.check("catalog")
        self.check("catalog", "schedules")

    def test_a_width_that_is_no_number_or_out_of_bounds(self):
        usual = foreshard("catalog", "schedules")
        self.assertEqual(foreshard("catalog", "schedules", columns="wide"), usual)
        self.assertEqual(foreshard("catalog", "schedules", columns=100), usual)
        self.assertEqual(foreshard("catalog", "schedules", columns=1), foreshard("catalog", "schedules", columns=80))
        self.assertEqual(foreshard("catalog", "schedules", columns=999),
                         foreshard("catalog", "schedules", columns=140))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
