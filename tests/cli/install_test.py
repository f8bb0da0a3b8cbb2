#!/usr/bin/env python3
"""An installed tree that was moved predicts as the built program does, from its own files alone.

    install_test.py PROGRAM SOURCE BUILD [Class.test...]
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE, BUILD = map(pathlib.Path, sys.argv[1:4])
STUDY = "gpt3-175b-a100-1024"


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        first = pathlib.Path(cls.folder.name) / "first"
        subprocess.run(["cmake", "--install", BUILD, "--prefix", first], check=True,
                       stdout=subprocess.DEVNULL)
        cls.root = first.rename(first.parent / "moved to")
        cls.empty = cls.root.parent / "empty"
        cls.empty.mkdir()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def json_of(self, *arguments):
        environment = {key: value for key, value in os.environ.items() if key != "FORESHARD_CONFIGS"}
        done = subprocess.run([self.root / "bin/foreshard", *arguments, "--format", "json"],
                              cwd=self.empty, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_what_is_installed(self):
        for name in ("bin/foreshard", "share/foreshard/configs/studies/" + STUDY + ".yaml",
                     "share/doc/foreshard/README.md", "share/doc/foreshard/docs/architecture.md",
                     "share/doc/foreshard/LICENSE", "share/doc/foreshard/NOTICE",
                     "share/bash-completion/completions/foreshard",
                     "share/zsh/site-functions/_foreshard"):
            self.assertTrue((self.root / name).is_file(), name)

    def test_it_uses_its_own_files(self):
        configs = self.root / "share/foreshard/configs"
        self.assertEqual(self.json_of("version")["catalogue"], str(configs))
        prediction = self.json_of("simulate", STUDY)
        for read in prediction["inputs"]:
            path = self.root / "share/foreshard" / read["path"]
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            self.assertEqual(digest, read["sha256"], read["path"])
        built = subprocess.run([PROGRAM, "--configs", SOURCE / "configs", "simulate", STUDY,
                                "--format", "json"], capture_output=True, text=True, check=True)
        self.assertEqual(prediction, json.loads(built.stdout))

    def test_the_source_tree_is_not_read(self):
        model = self.root / "share/foreshard/configs/models/gpt3-175b.yaml"
        before = model.read_text()
        model.write_text(before.replace("name: GPT-3 175B", "name: Moved", 1))
        self.assertTrue(self.json_of("simulate", STUDY)["study"]["model"].startswith("Moved:"))
        model.write_text(before)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
