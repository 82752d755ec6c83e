"""The table of ratios and bars after a run of comparisons."""

import pytest
from paired import REPORTED


def _rows():
    words = {None: "", True: "met", False: "MISSED"}
    for info in REPORTED:
        for peer, r in info["ratios"].items():
            bar = "" if r["bar"] is None else f"{r['bar']:g}"
            quartiles = f"{r['median']:.4g} ({r['q1']:.4g} to {r['q3']:.4g})"
            sides = f"{info['side']} {r['ours']:.4g}, {peer} {r['theirs']:.4g} {r['unit']}"
            yield info["work"], sides, quartiles, bar, words[r["met"]]
        for name, v in info.get("values", {}).items():
            measured = f"{v['value']:.4g} {v['unit']}"
            yield info["work"], name, measured, f"{v['bar']:g}", words[v["met"]]


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    rows = list(_rows())
    if not rows:
        return
    terminalreporter.section("ratios of paired rounds: median (quartiles)")
    table = [("work", "medians", "measured", "bar", ""), *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        terminalreporter.line("  ".join(cells).rstrip(), red=row[-1] == "MISSED")
