#!/usr/bin/env python3
"""The notebooks of docs/notebooks run and draw; their code, and that of the package, passes mypy --strict.

    notebooks_test.py SOURCE BUILD [Class.test...]

Without nbclient and ipykernel the cells run in this process; without mypy its test is left out.
"""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
NOTEBOOKS = sorted((SOURCE / "docs/notebooks").glob("*.ipynb"))
PACKAGE = BUILD / "python"
os.environ["FORESHARD_CONFIGS"] = str(SOURCE / "configs")
os.environ["PYTHONPATH"] = str(PACKAGE)
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # of ipykernel: a remark less
sys.path.insert(0, str(PACKAGE))


def cells(notebook, kind):
    return ["".join(cell["source"]) for cell in json.loads(notebook.read_text())["cells"]
            if cell["cell_type"] == kind]


def has(*modules):
    return all(importlib.util.find_spec(module) for module in modules)


class Notebooks(unittest.TestCase):
    def test_there_are_three(self):
        self.assertEqual(len(NOTEBOOKS), 3)

    def test_they_are_kept_without_outputs(self):
        for notebook in NOTEBOOKS:
            for cell in json.loads(notebook.read_text())["cells"]:
                self.assertEqual(cell.get("outputs", []), [], notebook.name)
                self.assertIsNone(cell.get("execution_count"), notebook.name)

    def test_links_resolve(self):
        for notebook in NOTEBOOKS:
            for link in re.findall(r"\]\(([^():\s#]+)", "\n".join(cells(notebook, "markdown"))):
                self.assertTrue((notebook.parent / link).is_file(), link)

    def run_as_notebook(self, notebook):
        """Pictures among the outputs."""
        import nbclient
        import nbformat
        book = nbformat.read(notebook, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": folder}}).execute()
        shown = [output.get("data", {}) for cell in book.cells for output in cell.get("outputs", [])]
        return [data["image/svg+xml"] for data in shown if "image/svg+xml" in data]

    def run_here(self, notebook):
        names, pictures = {}, []
        for code in cells(notebook, "code"):
            *lines, last = code.splitlines()
            try:
                last_value = compile(last, notebook.name, "eval")
            except SyntaxError:
                exec(compile(code, notebook.name, "exec"), names)
                continue
            exec(compile("\n".join(lines), notebook.name, "exec"), names)
            value = eval(last_value, names)
            if hasattr(value, "_repr_svg_"):
                pictures.append(value._repr_svg_())
        return pictures

    def test_they_run_and_draw(self):
        nbclient = has("nbclient", "ipykernel")
        for notebook in NOTEBOOKS:
            with self.subTest(notebook.name):
                pictures = (self.run_as_notebook if nbclient else self.run_here)(notebook)
                self.assertGreater(len(pictures), 0)
                for picture in pictures:
                    self.assertTrue(picture.startswith("<svg"))
        if not nbclient:
            self.skipTest("their cells ran, but not in a kernel: nbclient or ipykernel is not installed")

    def test_mypy_is_content(self):
        if not has("mypy"):
            self.skipTest("mypy is not installed")
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for notebook in NOTEBOOKS:
                files.append(pathlib.Path(folder) / f"{notebook.stem.replace('-', '_')}.py")
                files[-1].write_text("\n".join(cells(notebook, "code")) + "\n")
            files.append(PACKAGE / "foreshard")
            done = subprocess.run(
                [sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder, *files], cwd=folder,
                env={**os.environ, "MYPYPATH": str(PACKAGE)}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
