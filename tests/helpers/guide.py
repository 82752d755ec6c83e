"""The files and commands of docs/plugins.md."""

import re
import tomllib
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "plugins.md"
_FILE = re.compile(r"```(?:python|toml)\n# (\S+)\n(.*?)```", re.S)


def files():
    """The text of each file by its path, in order."""
    return dict(_FILE.findall(GUIDE.read_text(encoding="utf-8")))


def commands():
    """The command lines, in order."""
    blocks = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    return [line for block in blocks for line in block.splitlines()]


def write(folder):
    """Write every file of the guide."""
    for name, text in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def install_verbs(folder):
    """Put the metadata of the guide's verbs next to its modules, as pip would."""
    points = tomllib.loads(files()["pyproject.toml"])["project"]["entry-points"]["bench.commands"]
    about = folder / "my_plugins-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugins\nVersion: 1.0\n")
    lines = [f"{name} = {value}\n" for name, value in points.items()]
    (about / "entry_points.txt").write_text("[bench.commands]\n" + "".join(lines))
