"""Rows of PREDICTIONS.md, for the tools that freeze figures."""

import datetime
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOG = ROOT / "PREDICTIONS.md"
HEADER_END = "| --- | --- | --- | --- | --- | --- |\n"


def record(reason, rows):
    """Puts rows (what, old, new) at the head of the table, under a reason "CHANGE: WHY"."""
    subject, colon, why = reason.partition(": ")
    if not colon:
        subject, why = reason, "see the change"
    today = datetime.date.today().isoformat()
    lines = [f"| {today} | {subject} | {rows[0][0]} | {rows[0][1]} | {rows[0][2]} | {why} |\n"]
    lines += [f"| | | {what} | {old} | {new} | |\n" for what, old, new in rows[1:]]
    text = LOG.read_text()
    at = text.index(HEADER_END) + len(HEADER_END)
    LOG.write_text(text[:at] + "".join(lines) + text[at:])
