"""Make the pictures of README and documentation: ``python docs/make_gallery.py [FOLDER]``.

The runs are kept in FOLDER (else in a temporary one) and not done twice. Needs matplotlib, Pillow
and Chromium; without Chromium the pictures of the page are left as they are.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image

PICTURES = Path(__file__).parent / "gallery"
BENCH = Path(sys.executable).with_name("bench")
COLOURS = 128

RUNS = {
    "yahoo": "--suite yahoo --learners miser,cronus,cegb",
    "quickstart": "--suite quickstart",
    "cstc": "--suite cstc-synthetic",
}
SHOTS = {  # picture: run, state in the page's address, width of the window, from and to which line
    "page": ("yahoo", {"share": "0.1"}, 1200, (0, 1330)),
    "page-phone": ("quickstart", {"data": "digits", "share": "0.4"}, 500, (0, 995)),
    "stages": ("cstc", {"share": "0.315"}, 1100, (1920, 2440)),
}
CURVES = ("quickstart",)


def bench(store: Path, *words: str) -> None:
    """Run a command on a store."""
    subprocess.run([BENCH, *words, "--store", store], check=True)


def shoot(browser: str, page: str, width: int, lines: tuple[int, int], picture: Path) -> None:
    """Photograph a part of a page, in few colours."""
    flags = ["--headless", "--no-sandbox", "--hide-scrollbars", "--virtual-time-budget=3000"]
    size = [f"--window-size={width},{lines[1]}", f"--screenshot={picture}"]
    subprocess.run([browser, *flags, *size, page], check=True, stderr=subprocess.DEVNULL)
    with Image.open(picture) as image:
        part = image.convert("RGB").crop((0, lines[0], image.width, image.height))
    part.quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)


def main(folder: Path) -> None:
    """Carry out the runs, and make each picture."""
    PICTURES.mkdir(exist_ok=True)
    for name, options in RUNS.items():
        bench(
            folder / f"{name}.db", "run", *options.split(), "--quiet", "-o", f"{folder}/{name}.txt"
        )
        bench(folder / f"{name}.db", "report", "-o", f"{folder}/{name}.html")
    for name in CURVES:
        bench(
            folder / f"{name}.db",
            "report",
            "--plot",
            f"{PICTURES}/{name}.svg",
            "-o",
            f"{folder}/x.md",
        )
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
