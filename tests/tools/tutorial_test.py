#!/usr/bin/env python3
"""docs/tutorial.md does what it says: each command of its ```sh blocks ends well, one after another, in one shell and
in an empty folder. A block whose first line is `# NAME.yaml` (or .csv, .txt) is the file of that name there.

    tutorial_test.py PROGRAM SOURCE
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
PAGE = SOURCE / "docs/tutorial.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w.-]+\.(?:yaml|csv|txt))\b")
MOST_SECONDS = 20  # of processors, whatever else the machine does; a reader waits for about ten


def steps():
    """("file", name, text) and ("command", text), in the order of the page."""
    for language, text in BLOCK.findall(PAGE.read_text()):
        file = FILE.match(text)
        if language == "sh":
            for command in re.sub(r"\\\n", " ", text).splitlines():
                if command.strip() and not command.startswith("#"):
                    yield "command", command
        elif file:
            yield "file", file[1], text


class Shell:
    """bash in a folder, where `foreshard` is the program and so is ./run, as in a fresh clone."""

    def __init__(self, folder):
        self.log = folder / "log"
        self.seconds = 0.0
        home = folder / "clone"
        home.mkdir()
        (home / "configs").symlink_to(SOURCE / "configs")
        run = home / "run"
        run.write_text(f'#!/bin/sh\n[ $# = 0 ] && set -- simulate gpt3-175b-a100-1024\nexec "{PROGRAM}" "$@"\n')
        run.chmod(0o755)
        environment = dict(os.environ, LC_ALL="C.UTF-8", PATH=f"{PROGRAM.parent}:{os.environ['PATH']}", FORESHARD_CONFIGS=str(SOURCE / "configs"))
        self.bash = subprocess.Popen(["bash"], cwd=home, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, command):
        """Exit code, what was said, and seconds of processors; a name for the shell's folder, in which files go."""
        self.bash.stdin.write(f'{{\n{command}\n}} </dev/null >"{self.log}" 2>&1\necho "$? $PWD"\ntimes\n')
        self.bash.stdin.flush()
        code, _, self.folder = self.bash.stdout.readline().rstrip("\n").partition(" ")
        self.bash.stdout.readline()  # of the shell; the next line is of its children
        parts = re.findall(r"(\d+)m([\d.]+)s", self.bash.stdout.readline())
        before, self.seconds = self.seconds, sum(60 * int(minutes) + float(rest) for minutes, rest in parts)
        return int(code), self.log.read_text(), self.seconds - before

    def close(self):
        self.bash.stdin.close()
        self.bash.wait()
        self.bash.stdout.close()


class Tutorial(unittest.TestCase):
    def test_every_command_ends_well(self):
        count = 0
        with tempfile.TemporaryDirectory() as home:
            shell = Shell(pathlib.Path(home))
            self.addCleanup(shell.close)
            for kind, *what in steps():
                if kind == "file":
                    name, text = what
                    (pathlib.Path(shell.folder) / name).write_text(text)
                    continue
                code, said, seconds = shell.run(what[0])
                self.assertEqual(code, 0, f"{what[0]}\n{said[-2000:]}")
                self.assertLess(seconds, MOST_SECONDS, what[0])
                count += 1
        self.assertGreater(count, 10)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
