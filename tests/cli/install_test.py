#!/usr/bin/env python3
"""An installed tree that was moved predicts as the built program does, from its own files alone, and so
does a program that is built against it.

    install_test.py PROGRAM SOURCE BUILD [Class.test...]
"""

import hashlib
import json
import os
import pathlib
import re
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

    def json_of(self, *arguments, code=0):
        environment = {key: value for key, value in os.environ.items() if key != "FORESHARD_CONFIGS"}
        done = subprocess.run([self.root / "bin/foreshard", *arguments, "--format", "json"],
                              cwd=self.empty, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def configured(self, folder):
        """CMake's answer to the example in `folder`, with the compiler and flags of the build."""
        cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE))
        flags = f"-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror {cache['CMAKE_CXX_FLAGS']}"
        return subprocess.run(
            ["cmake", "-S", self.root / "share/doc/foreshard/examples/predict", "-B", folder,
             "-G", cache["CMAKE_GENERATOR"], f"-DCMAKE_PREFIX_PATH={self.root}",
             f"-DCMAKE_BUILD_TYPE={cache['CMAKE_BUILD_TYPE']}",
             f"-DCMAKE_CXX_COMPILER={cache['CMAKE_CXX_COMPILER']}", f"-DCMAKE_CXX_FLAGS={flags}"],
            capture_output=True, text=True)

    def test_what_is_installed(self):
        for name in ("bin/foreshard", "include/foreshard/foreshard.h", "lib/libforeshard.a",
                     "lib/cmake/foreshard/foreshardConfig.cmake",
                     "share/doc/foreshard/examples/predict/main.cc", "share/foreshard/configs/studies/" + STUDY + ".yaml",
                     "share/doc/foreshard/README.md", "share/doc/foreshard/docs/architecture.md",
                     "share/doc/foreshard/LICENSE", "share/doc/foreshard/NOTICE",
                     "share/doc/foreshard/THIRD_PARTY",
                     "share/bash-completion/completions/foreshard",
                     "share/zsh/site-functions/_foreshard", "share/fish/vendor_completions.d/foreshard.fish"):
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

    def test_its_python_package_uses_its_own_files(self):
        package = self.root / "lib/python3/dist-packages"
        if not next(package.glob("foreshard/_core*"), None):
            self.skipTest("the package for Python was not built")
        environment = {key: value for key, value in os.environ.items() if key != "FORESHARD_CONFIGS"}
        done = subprocess.run([sys.executable, "-c", "import foreshard as fs; print(fs.build().catalogue); "
                               f"print(fs.Study({STUDY!r}).predict().json(), end='')"], cwd=self.empty,
                              env={**environment, "PYTHONPATH": str(package)}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        catalogue, prediction = done.stdout.split("\n", 1)
        self.assertEqual(catalogue, str(self.root / "share/foreshard/configs"))
        self.assertEqual(json.loads(prediction), self.json_of("simulate", STUDY))

    def test_the_source_tree_is_not_read(self):
        model = self.root / "share/foreshard/configs/models/gpt3-175b.yaml"
        before = model.read_text()
        model.write_text(before.replace("name: GPT-3 175B", "name: Moved", 1))
        self.assertTrue(self.json_of("simulate", STUDY)["study"]["model"].startswith("Moved:"))
        model.write_text(before)

    def test_a_program_is_built_against_it(self):
        folder = self.root.parent / "example"
        done = self.configured(folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run(["cmake", "--build", folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        environment = {key: value for key, value in os.environ.items() if key != "FORESHARD_CONFIGS"}
        run = lambda: subprocess.run([folder / "predict"], cwd=self.empty, env=environment,
                                     capture_output=True, text=True)
        done = run()
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 3)
        for tensor, line in zip((8, 4, 2), lines):
            step = self.json_of("simulate", STUDY, "--set", f"strategy.tensor_parallel={tensor}",
                                "--set", f"strategy.data_parallel={64 // tensor}",
                                code=3 if line.endswith("does not fit") else 0)["step"]
            self.assertIn(f"tensor {tensor}: {step['time_s']:.2f} s ({step['low_s']:.2f} to", line)

        configs = self.root / "share/foreshard/configs"  # nothing else is read
        away = configs.rename(self.root / "away")
        done = run()
        away.rename(configs)
        self.assertEqual(done.returncode, 1)
        self.assertIn(STUDY, done.stderr)

    def test_a_package_without_library_says_so(self):
        library = self.root / "lib/libforeshard.a"
        away = library.rename(self.root / "away.a")
        done = self.configured(self.root.parent / "without")
        away.rename(library)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("this installation holds the program alone", " ".join(done.stderr.split()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
