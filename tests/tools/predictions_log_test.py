#!/usr/bin/env python3
"""tools/predictions_log.py on files of its own, and the two logs of the project: PREDICTIONS.md has studies
alone, docs/accuracy-history.csv tables alone, and every row of either is whole.

    predictions_log_test.py SOURCE
"""

import csv
import datetime
import pathlib
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "tools"))
import predictions_log  # noqa: E402

FIELDS = ["date", "change", "table", "old", "new", "why"]


class PredictionsLog(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.file = pathlib.Path(self.home.name) / "log"

    def tearDown(self):
        self.home.cleanup()

    def test_studies_go_to_the_head_of_the_table(self):
        self.file.write_text("# Log\n\n" + predictions_log.HEADER_END + "| 2026-01-01 | first | a | 1 s | 2 s | so |\n")
        predictions_log.record("Trees: as measured", [("b", "3 s", "4 s"), ("c", "5 s", "6 s")], self.file)
        lines = self.file.read_text().splitlines()
        today = datetime.date.today().isoformat()
        self.assertEqual(lines[3:], [f"| {today} | Trees | b | 3 s | 4 s | as measured |", "| | | c | 5 s | 6 s | |",
                                     "| 2026-01-01 | first | a | 1 s | 2 s | so |"])

    def test_tables_go_below_the_header_of_the_history(self):
        self.file.write_text(",".join(FIELDS) + "\n2026-01-01,first,a.csv,1 %,2 %,so\n")
        rows = [("training/b.csv, median abs. error", "3.0 %", "4.0 %"), ("c.csv, rows predicted", 5, 4)]
        predictions_log.record_tables("Trees", rows, self.file)
        today = datetime.date.today().isoformat()
        self.assertEqual(list(csv.reader(self.file.read_text().splitlines())), [
            FIELDS, [today, "Trees", "training/b.csv, median abs. error", "3.0 %", "4.0 %", "see the change"],
            [today, "Trees", "c.csv, rows predicted", "5", "4", "see the change"],
            ["2026-01-01", "first", "a.csv", "1 %", "2 %", "so"]])

    def test_the_logs_of_the_project_are_whole(self):
        log = (SOURCE / "PREDICTIONS.md").read_text()
        rows = [line.strip("|").split("|") for line in log.partition(predictions_log.HEADER_END)[2].splitlines()]
        self.assertGreater(len(rows), 100)
        for row in rows:
            self.assertEqual(len(row), 6, row)
            self.assertNotIn(".csv", row[2])
        self.assertNotEqual(rows[0][0].strip(), "")
        tables = list(csv.reader((SOURCE / "docs/accuracy-history.csv").read_text().splitlines()))
        self.assertEqual(tables[0], FIELDS)
        self.assertGreater(len(tables), 400)
        for row in tables[1:]:
            self.assertEqual(len(row), 6, row)
            datetime.date.fromisoformat(row[0])
            self.assertTrue(all(row), row)
        dates = [row[0] for row in tables[1:]]
        self.assertEqual(dates, sorted(dates, reverse=True))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
