"""Results as cards of a notebook."""

from __future__ import annotations

import html
from typing import Any, Iterable

_MOST_ROWS = 20
_STYLE = "border:1px solid #8884;border-radius:6px;padding:8px 12px;display:inline-block"


def figure(value: Any) -> str:
    """A value for people: numbers with four digits."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def _table(rows: Iterable[Iterable[Any]], head: Iterable[str] = ()) -> str:
    def cells(row: Iterable[Any], tag: str) -> str:
        return "".join(f"<{tag}>{html.escape(figure(one))}</{tag}>" for one in row)

    top = list(head)
    text = f"<tr>{cells(top, 'th')}</tr>" if top else ""
    body = "".join("<tr>" + cells(row, "td") + "</tr>" for row in rows)
    return f"<table>{text}{body}</table>"


def _scalars(told: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        (key, value)
        for key, value in told.items()
        if key != "schema" and value is not None and not isinstance(value, (list, dict))
    ]


def _prediction(told: dict[str, Any]) -> str:
    step, memory, cost = told["step"], told["memory"], told["cost"]
    verdict = "fits" if told["feasible"] else "does not fit"
    if step["time_s"] is None:
        verdict = "is ended by a failure"
    rows: list[tuple[str, Any]] = [("strategy", told["study"]["strategy"])]
    rows.append(("cluster", told["study"]["cluster"]))
    if step["time_s"] is not None:
        interval = f"{figure(step['low_s'])} to {figure(step['high_s'])}"
        rows.append(("step", f"{figure(step['time_s'])} s ({interval})"))
    rows.append(("MFU", told["throughput"]["mfu"]))
    peak, capacity = memory["peak_bytes"] / 2**30, memory["capacity_bytes"] / 2**30
    rows.append(("memory", f"{figure(peak)} of {figure(capacity)} GiB"))
    rows.append(("cost", f"{figure(cost['usd_per_step'])} USD per step"))
    text = f"<b>{html.escape(told['study']['model'])}: {verdict}</b>" + _table(rows)
    whole = sum(told["breakdown_s"].values()) or 1
    bars = [
        f"<tr><td>{html.escape(key)}</td><td>{figure(value)} s</td><td><div style='background:#58a;"
        f"height:0.8em;width:{160 * value / whole:.0f}px'></div></td></tr>"
        for key, value in told["breakdown_s"].items()
        if value > 0
    ]
    text += f"<table>{''.join(bars)}</table>"
    for warning in told["warnings"]:
        text += f"<div>{html.escape(warning['message'])}</div>"
    return text


def card(name: str, rows: str | None, told: dict[str, Any]) -> str:
    """The HTML of a result."""
    if told.get("schema") == "foreshard.prediction/1":
        return f'<div style="{_STYLE}">{_prediction(told)}</div>'
    text = f"<b>{html.escape(name)}</b>" + _table(_scalars(told))
    listed = told[rows] if rows else []
    if listed:
        keys = [key for key, _ in _scalars(listed[0])]
        text += _table(([one.get(key) for key in keys] for one in listed[:_MOST_ROWS]), keys)
        if len(listed) > _MOST_ROWS:
            text += f"<div>... and {len(listed) - _MOST_ROWS} more</div>"
    return f'<div style="{_STYLE}">{text}</div>'
