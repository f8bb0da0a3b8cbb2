#!/usr/bin/env python3
"""`foreshard study` as processes that are killed, interrupted, starved and spread over ranks: whatever
happens, nothing that was done is lost, and `study export` has the bytes of an undisturbed serial run. Likewise
`foreshard search` over ranks.

    study_test.py PROGRAM SOURCE BUILD [Class.test...]
"""

import contextlib
import json
import os
import pathlib
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
POINTS = 48
BASE = """\
cluster: {name: box, node: dgx-a100-80gb}
model: {name: small, layers: 16, hidden: 1024, heads: 16, vocabulary: 32000, sequence: 512}
strategy: {tensor_parallel: 2, pipeline_parallel: 2, data_parallel: 2, global_batch: 256, framework: megatron-lm}
"""
# From the slow to the fast ones: a run has most of its points late.
SWEEP = """\
study: base.yaml
train: 1B tokens
axes:
  - {key: strategy.micro_batch, values: [1, 2, 4]}
  - {key: model.layers, values: [16, 14, 12, 10, 8, 6, 4, 3]}
  - {key: cluster.rent, values: [1 USD/h, 2 USD/h]}
"""
# A launcher that the tests run under is none of theirs.
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("OMPI_", "PMIX_", "SLURM_", "PMI_", "FLUX_", "PALS_"))}


MPIRUN = ("mpirun", "--enable-recovery", "--oversubscribe", "--allow-run-as-root", "-n", "4")
needs_mpirun = unittest.skipUnless(shutil.which("mpirun"), "no mpirun")


class Processes(unittest.TestCase):
    """Of one command, in a folder with a study."""
    command = ""

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.home.name)
        (cls.folder / "base.yaml").write_text(BASE)

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()

    @classmethod
    def start(cls, *arguments, prefix=(), **others):
        return subprocess.Popen([*prefix, PROGRAM, cls.command, *map(str, arguments)], cwd=cls.folder, env=CLEAN,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, **others)

    @classmethod
    def ended(cls, process, code=0):
        out, err = process.communicate(timeout=300)
        assert process.returncode == code, f"{process.returncode}, not {code}\n{out[-2000:]}\n{err}"
        return out, err

    def rank_of(self, launcher, rank):
        """The process of a rank that `launcher` started."""
        wanted = f"OMPI_COMM_WORLD_RANK={rank}".encode()
        for _ in range(500):
            for entry in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    if f"PPid:\t{launcher.pid}\n" in (entry / "status").read_text() and \
                            wanted in (entry / "environ").read_bytes().split(b"\0"):
                        return int(entry.name)
                except OSError:
                    continue
            time.sleep(0.01)
        return self.fail(f"there is no rank {rank}")

    def rank_one(self, *arguments, code=2):
        """What a rank says that nothing but the environment tells of the others."""
        process = subprocess.run([PROGRAM, self.command, *arguments], cwd=self.folder, capture_output=True, text=True,
                                 env={**CLEAN, "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"})
        self.assertEqual(process.returncode, code)
        return process.stderr


class Study(Processes):
    command = "study"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "sweep.yaml").write_text(SWEEP)
        cls.serial = {form: cls.study("sweep.yaml", "--threads", "1", "--format", form)
                      for form in ("json", "csv")}

    @classmethod
    def study(cls, *arguments, code=0):
        return cls.ended(cls.start(*arguments), code)[0]

    def done(self, results):
        """Points that a results file has, whole or not."""
        export = subprocess.run([PROGRAM, "study", "export", results, "--format", "json"], cwd=self.folder,
                                env=CLEAN, capture_output=True, text=True)
        self.assertIn(export.returncode, (0, 5), export.stderr)
        return json.loads(export.stdout)["done"]

    def wait_for(self, results, size):
        """Until the results file, or its log, has grown beyond `size` bytes."""
        paths = (self.folder / results, self.folder / f"{results}-wal")
        for _ in range(6000):
            if any(path.exists() and path.stat().st_size > size for path in paths):
                return
            time.sleep(0.01)
        self.fail(f"{results} did not grow beyond {size} bytes")

    def expect_serial(self, results):
        for form, text in self.serial.items():
            self.assertEqual(self.study("export", results, "--format", form), text, form)

    def test_killed_run_goes_on(self):
        process = self.start("sweep.yaml", "--results", "killed.db", "--threads", "1")
        self.wait_for("killed.db", 100000)
        process.kill()
        process.communicate()
        before = self.done("killed.db")
        self.assertGreater(before, 0)
        self.assertLess(before, POINTS)
        _, err = self.ended(self.start("sweep.yaml", "--results", "killed.db", "--format", "json"))
        self.assertIn(f"{before} of {POINTS} points were in killed.db already", err)
        self.study("sweep.yaml", "--results", "killed.db", "--budget", "1ns", code=5)
        self.expect_serial("killed.db")

    def test_interrupt_and_budget_keep_what_is_done(self):
        process = self.start("sweep.yaml", "--results", "interrupted.db", "--threads", "1")
        self.wait_for("interrupted.db", 100000)
        process.send_signal(signal.SIGINT)
        out, err = self.ended(process, 5)
        self.assertIn("not done", out)
        self.assertIn("interrupted: what has begun is finished and kept", err)
        self.assertGreater(self.done("interrupted.db"), 0)
        out = self.study("sweep.yaml", "--budget", "1ms", "--results", "interrupted.db", code=5)
        self.assertIn("not done", out)
        self.study("sweep.yaml", "--results", "interrupted.db")
        self.expect_serial("interrupted.db")

    def test_full_disk_is_one_message(self):
        def limited():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (150000, 150000))
        process = self.start("sweep.yaml", "--results", "full.db", "--threads", "1", preexec_fn=limited,
                             restore_signals=False)
        out, err = self.ended(process, 2)
        self.assertEqual(out, "")
        self.assertEqual(len(err.strip().splitlines()), 1, err)
        self.assertIn("full.db: ", err)
        before = self.done("full.db")
        self.assertGreater(before, 0)
        _, err = self.ended(self.start("sweep.yaml", "--results", "full.db"))
        self.assertIn(f"{before} of {POINTS} points", err)
        self.expect_serial("full.db")

    def test_file_of_another_form_is_set_aside(self):
        self.study("sweep.yaml", "--shard", "1/40", "--results", "old.db", "-o", os.devnull)
        with contextlib.closing(sqlite3.connect(self.folder / "old.db")) as database:
            database.execute("PRAGMA user_version = 2")
        before = (self.folder / "old.db").read_bytes()
        _, err = self.ended(self.start("sweep.yaml", "--results", "old.db"))
        self.assertIn("was written in another form, by another version of foreshard: it is now old.db.aside", err)
        self.assertEqual((self.folder / "old.db.aside").read_bytes(), before)
        self.expect_serial("old.db")

    def test_file_that_may_not_be_written_to_is_read(self):
        folder = self.folder / "kept"
        folder.mkdir()
        self.study("sweep.yaml", "--shard", "1/8", "--results", "kept/r.db", "-o", os.devnull)
        for path, mode in ((folder / "r.db", 0o444), (folder, 0o555), (self.folder, 0o755)):
            path.chmod(mode)
        somebody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        before = (folder / "r.db").read_bytes()
        out, _ = self.ended(self.start("export", "kept/r.db", "--format", "json", **somebody), 5)
        self.assertEqual(json.loads(out)["done"], POINTS // 8)
        out, err = self.ended(self.start("sweep.yaml", "--results", "kept/r.db", "--format", "json", **somebody))
        self.assertIn("kept/r.db may not be written to: what it has is used, and nothing is stored", err)
        self.assertIn(f"{POINTS // 8} of {POINTS} points were in kept/r.db already", err)
        self.assertEqual(out, self.serial["json"])
        self.assertEqual((folder / "r.db").read_bytes(), before)
        folder.chmod(0o755)
        self.assertEqual(list(folder.iterdir()), [folder / "r.db"])

    def test_database_of_another_program_is_left_alone(self):
        path = self.folder / "theirs.db"
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE t(a)")
        before = path.read_bytes()
        for arguments in (("sweep.yaml", "--results", "theirs.db"), ("export", "theirs.db")):
            self.assertIn("theirs.db: is a database of another program", self.ended(self.start(*arguments), 2)[1])
        self.assertEqual(path.read_bytes(), before)
        self.assertFalse((self.folder / "theirs.db.aside").exists())

    def test_damaged_outcome_is_named_and_computed_again(self):
        self.study("sweep.yaml", "--results", "bad.db")
        path = self.folder / "bad.db"
        content = bytearray(path.read_bytes())
        content[content.index(b'"time_s":') + 9] ^= 1
        path.write_bytes(content)
        _, err = self.ended(self.start("export", "bad.db"), 5)
        self.assertIn("bad.db: 1 of its points is damaged, and counted as not done:\n   micro_batch ", err)
        _, err = self.ended(self.start("sweep.yaml", "--results", "bad.db"))
        self.assertIn("bad.db: 1 of its points is damaged, and computed again:\n   micro_batch ", err)
        self.assertIn(f"{POINTS - 1} of {POINTS} points were in bad.db already", err)
        self.expect_serial("bad.db")

    def test_shards_merge_to_the_whole(self):
        for part in (1, 2, 3):
            self.study("sweep.yaml", "--shard", f"{part}/3", "--results", f"{part}.db", "-o", os.devnull)
        # Also where its own points miss the goal, and where it has none.
        (self.folder / "late.yaml").write_text(SWEEP + "goal: {within: 1 ms, minimise: usd}\n")
        self.study("late.yaml", "--shard", "2/40")
        self.study("late.yaml", "--shard", "49/49")
        self.study("merge", "1.db", "2.db", "3.db", "-o", "all.db")
        self.expect_serial("all.db")

    @needs_mpirun
    def test_one_of_four_ranks_is_killed(self):
        run = self.start("sweep.yaml", "--results", "ranks.db", "-o", "ranks.json", "--format", "json",
                         prefix=MPIRUN, start_new_session=True)
        self.wait_for("ranks.db", 60000)
        victim = self.rank_of(run, "2")
        os.kill(victim, signal.SIGKILL)
        self.ended(run)
        self.assertEqual((self.folder / "ranks.json").read_text(), self.serial["json"])
        self.expect_serial("ranks.db")
        # Left for ranks that come too late, and taken away by the next run.
        place = self.folder / "ranks.db.rank-0"
        self.assertTrue(place.read_text().startswith("over "))
        self.study("sweep.yaml", "--results", "ranks.db")
        self.assertFalse(place.exists())

    def test_ranks_need_a_place_to_meet(self):
        self.assertIn("give --results FILE: ranks meet beside it", self.rank_one("sweep.yaml"))

    def test_bad_input_is_one_message(self):
        (self.folder / "astray.yaml").write_text(SWEEP.replace("base.yaml", "sub/base.yaml"))
        for arguments, message in (
                (("no.yaml",), "no.yaml: "),
                (("base.yaml",), "base.yaml: is a study, not a grid of them"),
                (("astray.yaml",), "astray.yaml:1:8: error: there is no file 'sub/base.yaml'"),
                ((), "a sweep is missing"),
                (("sweep.yaml", "--budget", "0s"), "--budget: must be positive"),
                (("sweep.yaml", "--shard", "3/2"), "is no part of a sweep"),
                (("export", "no.db"), "no.db: there is no such file"),
                (("export", "base.yaml"), "base.yaml: is no results file"),
                (("export", "f.db", "-o", "./f.db"), "give each its own file"),
                (("sweep.yaml", "--results", "f.db", "-o", "./f.db"), "give each its own file"),
                (("sweep.yaml", "--top", "3", "--format", "csv"), "--top: csv has all points"),
                (("export", "f.db", "--shard", "1/2"), "study export: --shard has no effect there"),
                (("merge", "f.db", "-o", "g.db", "--format", "csv"), "--format has no effect there"),
                (("sweep.yaml", "--results", "sweep.yaml"), "give each its own file"),
                (("sweep.yaml", "-o", "sweep.yaml"), "give each its own file"),
                (("sweep.yaml", "--results", "base.yaml"), "is left as it is"),
                (("sweep.yaml", "--results", "."), "is a folder; name a file in it"),
                (("merge", "base.yaml"), "name the new file"),
                (("sweep.yaml", "--results", "no/folder/r.db"), "no/folder/r.db: ")):
            process = self.start(*arguments)
            out, err = process.communicate()
            self.assertEqual((process.returncode, out), (2, ""), arguments)
            self.assertIn(message, err)

    def test_goal_that_nothing_meets(self):
        (self.folder / "goal.yaml").write_text(SWEEP + "goal: {within: 1 min, minimise: usd}\n")
        out = self.study("goal.yaml", code=3)
        self.assertIn("No point meets it.", out)
        self.assertIn(" late", out)


class Search(Processes):
    """Over ranks. Each simulation is of 2,048 micro-batches on 16 stages, and takes some tenths of a second."""
    command = "search"
    how = ("pair.yaml", "--space", "space.yaml", "--simulate", "36", "--certify", "4", "--format", "json", "--threads", "1")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "pair.yaml").write_text(
            BASE.replace("}", ", nodes: 2, fabric: {kind: single-switch}}", 1).replace("256", "2048"))
        (cls.folder / "space.yaml").write_text("level: 3\npipeline_parallel: [16]\nmicro_batch: [1]\n")
        cls.serial, _ = cls.ended(cls.start(*cls.how))

    def launched(self, found, *more):
        """Four ranks of which rank 2 simulates: the launcher, and that rank's process."""
        run = self.start(*self.how, "-o", found, *more, prefix=MPIRUN, start_new_session=True)
        victim = self.rank_of(run, "2")
        place, reading = self.folder / f"{found}.rank-0", 30  # more ticks than a rank needs to read its files
        for _ in range(3600):  # of 0.05 s: ranks start slowly beside a compiler
            if place.exists() and self.ticks_of(victim) > reading:
                self.assertFalse(place.read_text().startswith("over"))
                return run, victim
            time.sleep(0.05)
        return self.fail("rank 2 was given nothing")

    @staticmethod
    def ticks_of(process):
        """Time that it has computed, in hundredths of a second."""
        return sum(map(int, pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(") ", 1)[1].split()[11:13]))

    @needs_mpirun
    def test_one_of_four_ranks_is_killed(self):
        run, victim = self.launched("killed.json")
        os.kill(victim, signal.SIGKILL)
        self.ended(run)
        self.assertEqual((self.folder / "killed.json").read_text(), self.serial)
        # Left for ranks that come too late, and taken away by the next run.
        place = self.folder / "killed.json.rank-0"
        self.assertTrue(place.read_text().startswith("over "))
        self.ended(self.start("base.yaml", "-o", "killed.json"))
        self.assertFalse(place.exists())

    @needs_mpirun
    def test_rank_0_is_killed(self):
        run, _ = self.launched("lost.json")
        os.kill(self.rank_of(run, "0"), signal.SIGKILL)
        _, err = run.communicate(timeout=60)
        for rank in (1, 2, 3):
            self.assertIn(f"error: rank {rank}: rank 0 is lost; search again", err)
        self.assertFalse((self.folder / "lost.json").exists())

    @needs_mpirun
    def test_interrupt_and_budget_give_the_best_so_far(self):
        run, _ = self.launched("interrupted.json")
        os.kill(self.rank_of(run, "0"), signal.SIGINT)
        _, interrupted = run.communicate(timeout=60)
        self.assertIn("interrupted: ", interrupted)
        _, over = self.start(*self.how, "-o", "over.json", "--budget", "3s", prefix=MPIRUN).communicate(timeout=60)
        for err, file in ((interrupted, "interrupted.json"), (over, "over.json")):
            self.assertNotIn("is lost", err)
            found = json.loads((self.folder / file).read_text())
            self.assertTrue(found["partial"])
            self.assertLess(0, found["simulated"])

    def test_a_shell_that_names_no_rank_searches_alone(self):
        for variables in ({"WORLD_SIZE": "1"}, {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4"}):
            done = subprocess.run([PROGRAM, "search", "base.yaml", "--level", "0", "--simulate", "1", "-o", "alone.txt"],
                                  cwd=self.folder, capture_output=True, text=True, env={**CLEAN, **variables})
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_ranks_need_a_place_to_meet(self):
        for where in ((), ("-o", "-")):
            self.assertIn("rank 1 of 2 (RANK, WORLD_SIZE, LOCAL_RANK) does not know where rank 0 is\n"
                          "   help: give -o FILE: ranks meet beside it", self.rank_one("base.yaml", *where))
        self.assertIn("has no part in the search of a graph", self.rank_one("decoder-graph-h100-16", "-o", "found.json", code=0))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
