"""Writes down what moved: studies in PREDICTIONS.md, tables of measurements in docs/accuracy-history.csv."""

import csv
import datetime
import io
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOG = ROOT / "PREDICTIONS.md"
HISTORY = ROOT / "docs/accuracy-history.csv"
HEADER_END = "| --- | --- | --- | --- | --- | --- |\n"


def parts(reason):
    """("CHANGE", "WHY") of a reason "CHANGE: WHY"."""
    subject, colon, why = reason.partition(": ")
    return (subject, why) if colon else (reason, "see the change")


def record(reason, rows, log=LOG):
    """Puts rows (study, old, new) at the head of PREDICTIONS.md's table, under a reason "CHANGE: WHY"."""
    subject, why = parts(reason)
    today = datetime.date.today().isoformat()
    lines = [f"| {today} | {subject} | {rows[0][0]} | {rows[0][1]} | {rows[0][2]} | {why} |\n"]
    lines += [f"| | | {what} | {old} | {new} | |\n" for what, old, new in rows[1:]]
    text = log.read_text()
    at = text.index(HEADER_END) + len(HEADER_END)
    log.write_text(text[:at] + "".join(lines) + text[at:])


def record_tables(reason, rows, history=HISTORY):
    """Puts rows (table, old, new) below the header of the history of errors, newest first. Each row has date, change and why."""
    subject, why = parts(reason)
    today = datetime.date.today().isoformat()
    header, rest = history.read_text().split("\n", 1)
    fresh = io.StringIO()
    csv.writer(fresh, lineterminator="\n").writerows([today, subject, *row, why] for row in rows)
    history.write_text(f"{header}\n{fresh.getvalue()}{rest}")
