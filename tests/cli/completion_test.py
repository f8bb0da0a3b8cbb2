#!/usr/bin/env python3
"""What the program says of itself: whatever `--help` lists stands in the manual page and in the
completion; bash completes as a person expects.

    completion_test.py PROGRAM SOURCE BUILD [Class.test...]
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def listed(help_text, section):
    """The first words of the lines of a section of --help."""
    begin = help_text.find(f"\n{section}:\n")
    lines = help_text[begin:].split("\n")[2:] if begin >= 0 else []
    names = []
    for line in lines:
        if not line.strip():
            break
        if line.startswith("  ") and line[2] != " ":
            names += line.split()[0].split(",")
    return names


def pages(command=()):
    """Each command with its help, the program first."""
    text = output(PROGRAM, *command, "--help")
    yield command, text
    for name in listed(text, "Subcommands"):
        yield from pages((*command, name))


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.share = pathlib.Path(cls.folder.name)
        cls.help2man = shutil.which("help2man")
        subprocess.run([SOURCE / "tools/describe", PROGRAM, cls.share, cls.help2man or ""], check=True)
        cls.bash = cls.share / "bash-completion/completions/foreshard"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def complete(self, *words):
        """What bash offers for the last word."""
        script = (f"source '{self.bash}'; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _foreshard; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        return output("bash", "-c", script, "bash", "foreshard", *words).split()

    def test_bash_completes(self):
        self.assertEqual(self.complete("sim"), ["simulate"])
        self.assertEqual(self.complete("simulate", "--eng"), ["--engine"])
        self.assertEqual(self.complete("simulate", "--engine", ""), ["fluid", "simgrid"])
        self.assertEqual(self.complete("simulate", "--engine", "s"), ["simgrid"])
        self.assertEqual(self.complete("simulate", "--engine", "=", "f"), ["fluid"])
        self.assertEqual(self.complete("simulate", "--engine", "="), ["fluid", "simgrid"])
        self.assertEqual(self.complete("simulate", "--model", ""), [])  # a file: bash's own
        self.assertEqual(self.complete("simulate", "study.yaml", "--fo"), ["--format"])
        self.assertEqual(self.complete("topology", "s"), ["show"])
        self.assertEqual(self.complete("topology", "show", "two-dgx-a100", "--format", "d"), ["dot"])
        self.assertIn("--configs", self.complete("topology", "show", "--c"))
        self.assertEqual(self.complete("--configs", "my-configs", "sea"), ["search"])

    def test_whatever_help_lists_is_completed(self):
        for command, text in pages():
            options, names = listed(text, "Options"), listed(text, "Subcommands")
            self.assertTrue(options, command)
            self.assertLessEqual(set(options), set(self.complete(*command, "-")), command)
            if names:
                self.assertEqual(set(self.complete(*command, "")), set(names), command)

    def test_zsh_has_the_same_words(self):
        text = (self.share / "zsh/site-functions/_foreshard").read_text()
        self.assertTrue(text.startswith("#compdef foreshard\n"))
        for command, page in pages():
            for name in listed(page, "Options") + listed(page, "Subcommands"):
                self.assertIn(f"'{name}:", text, command)
        if zsh := shutil.which("zsh"):
            subprocess.run([zsh, "-n", self.share / "zsh/site-functions/_foreshard"], check=True)

    def test_fish_has_the_same_words(self):
        """Each option and command stands on a line of its command, with its description."""
        text = (self.share / "fish/vendor_completions.d/foreshard.fish").read_text()
        for command, page in pages():
            path = "".join(f"/{word}" for word in command)
            lines = [line for line in text.splitlines() if f"\"__foreshard_at '{path}'\"" in line]
            for name in listed(page, "Options"):
                flag = f" -l {name[2:]} " if name.startswith("--") else f" -s {name[1:]} "
                self.assertTrue(any(flag in line for line in lines), (command, name))
            for name in listed(page, "Subcommands"):
                self.assertTrue(any(f" -f -a {name} -d '" in line for line in lines), (command, name))

    @unittest.skipUnless(shutil.which("fish"), "fish is not here")
    def test_fish_completes(self):
        def complete(line):
            script = f"source {self.share}/fish/vendor_completions.d/foreshard.fish; complete -C '{line}'"
            return [one.split("\t")[0] for one in output("fish", "--no-config", "-c", script).splitlines()]
        self.assertEqual(complete("foreshard sim"), ["simulate"])
        self.assertEqual(complete("foreshard simulate --eng"), ["--engine"])
        self.assertEqual(complete("foreshard simulate --engine "), ["fluid", "simgrid"])
        self.assertEqual(complete("foreshard simulate --engine=s"), ["--engine=simgrid"])
        self.assertEqual(complete("foreshard topology s"), ["show"])
        self.assertEqual(complete("foreshard topology show two-dgx-a100 --format d"), ["dot"])

    def test_another_shell_is_refused(self):
        done = subprocess.run([PROGRAM, "completion", "csh"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("use 'bash', 'zsh' or 'fish'", done.stderr)

    def test_whatever_help_lists_is_in_the_manual(self):
        if not self.help2man:
            self.skipTest("help2man is not here")
        for command, text in pages():
            page = self.share / "man/man1" / ("-".join(("foreshard", *command)) + ".1")
            manual = re.sub(r"\\f[BIR]|\\,|\\/", "", page.read_text()).replace("\\-", "-")
            for name in listed(text, "Options") + listed(text, "Subcommands"):
                self.assertIn(name, manual, page.name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
