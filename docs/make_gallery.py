"""Make the pictures of README and documentation: ``python docs/make_gallery.py [FOLDER]``.

The runs are kept in FOLDER (else in a temporary one) and not done twice. Needs matplotlib, Pillow
and Chromium; without Chromium the pictures of the page are left as they are.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

import matplotlib
from bench_reports import palette
from matplotlib.figure import Figure
from PIL import Image

import bench_core
from bench_core.statistics.comparison import Interval
from bench_core.terminal.wording import in_brackets, saving

PICTURES = Path(__file__).parent / "gallery"
BENCH = Path(sys.executable).with_name("bench")
COLOURS = 128

RUNS = {
    "quickstart": "--suite quickstart",
}
SHOTS = {  # picture: run, state in the page's address, width of the window, from and to which line
    "page": ("quickstart", {}, 1200, (0, 1330)),
    "page-phone": ("quickstart", {}, 500, (0, 1080)),
}
DRAWN = ("random-order", "gbrt", "cegb", "budget-boosting")


def bench(store: Path, *words: str) -> None:
    """Run a command on a store."""
    subprocess.run([BENCH, *words, "--store", store], check=True)


def shoot(browser: str, page: str, width: int, lines: tuple[int, int], picture: Path) -> None:
    """Photograph a part of a page, in few colours."""
    flags = ["--headless", "--no-sandbox", "--hide-scrollbars", "--virtual-time-budget=3000"]
    size = [f"--window-size={width},{lines[1]}", f"--screenshot={picture}"]
    subprocess.run([browser, *flags, *size, page], check=True, stderr=subprocess.DEVNULL)
    shrink(picture, lines[0])


def colour_of(learner: str) -> str:
    """The colour of a learner on light ground, as on the page; baselines are grey."""
    seen = palette.look(learner)
    return "#8a8a8a" if seen.dash else palette.COLOURS[seen.colour][0]


def draw_answer(store: Path, picture: Path) -> None:
    """Draw curves of a run, and what keeps 99% of gbrt's quality, with its cost."""
    result = bench_core.load_run("last", store)
    board = result.board(columns="all").set_index("learner")
    [found] = json.loads(result.report(store.with_suffix(".json")).read_text())["datasets"]
    curves = {one["learner"]: one["curve"] for one in found["learners"]}
    first, reference = board.index[0], found["reference"]
    models = {name: board.loc[name, ["cost", found["metric"]]] for name in (first, reference)}
    low, high, ratio = (board.loc[first, f"cheaper{end}"] for end in (" low", " high", ""))
    target = 0.99 * float(board.loc[reference, f"best {found['metric']}"])
    last = 1.05 * float(board["best cost"].max())
    matplotlib.rcParams["font.size"] = 9
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    for name in DRAWN:
        at = [point["budget"] for point in curves[name]] + [last]
        reached = [point["quality"] for point in curves[name]]
        style = {"color": colour_of(name), "linewidth": 2, "label": name}
        axes.step(at, [*reached, reached[-1]], where="post", **style)
    axes.axhline(target, color="#8a8a8a", linestyle=":")
    axes.annotate(f"99% of {reference}'s best", (0, target), (0, 3), textcoords="offset points")
    ends = []
    for name, (x, y) in models.items():
        ends.append((float(x), float(y)))
        axes.plot(*ends[-1], "o", color=colour_of(name), zorder=3)
        axes.annotate(f"{x:.2f}", ends[-1], (6, -13), textcoords="offset points", weight="bold")
    arrow = {"arrowstyle": "->", "color": colour_of(first), "shrinkA": 5, "shrinkB": 5}
    axes.annotate("", *ends, arrowprops=arrow)
    words = f"{saving(ratio)} cheaper{in_brackets(Interval(low, high), saving)}"
    middle = ((ends[0][0] + ends[1][0]) / 2, ends[0][1])
    white = {"color": "white", "pad": 0.8}  # a ground for words that cross curves
    how = {"textcoords": "offset points", "ha": "center", "color": colour_of(first), "bbox": white}
    axes.annotate(words, middle, (8, 9), **how)
    axes.set_xlim(0, last)
    axes.set_xlabel(f"mean cost of a row ({found['unit']})")
    axes.set_ylabel(f"{found['metric']} on test rows")
    axes.legend(loc="lower right", frameon=False)
    axes.set_title(f"{found['dataset']}: what each method reaches for its cost", loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(picture, dpi=150)
    shrink(picture)


def shrink(picture: Path, top: int = 0) -> None:
    """Leave the picture below a line, in few colours."""
    with Image.open(picture) as image:
        part = image.convert("RGB").crop((0, top, image.width, image.height))
    part.quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)


def main(folder: Path) -> None:
    """Carry out the runs, and make each picture."""
    PICTURES.mkdir(exist_ok=True)
    for name, options in RUNS.items():
        bench(
            folder / f"{name}.db", "run", *options.split(), "--quiet", "-o", f"{folder}/{name}.txt"
        )
        bench(folder / f"{name}.db", "report", "-o", f"{folder}/{name}.html")
    draw_answer(folder / "quickstart.db", PICTURES / "answer.png")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    for name, (run, state, width, lines) in SHOTS.items() if browser else ():
        page = f"{(folder / run).absolute().as_uri()}.html#{urlencode(state)}"
        shoot(str(browser), page, width, lines, PICTURES / f"{name}.png")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
