"""The ``bench`` command itself: its verbs, found by name and loaded on use."""

from __future__ import annotations

from importlib import import_module

import click

SECTIONS = {
    "Measure": ("run", "plan", "audit", "reprice"),
    "Read the results": ("report", "best", "export", "claims"),
    "Look up": ("list", "show"),
    "Get data and costs": ("data", "cost"),
}

_EPILOG = """\b
Examples:
  bench run --suite quickstart
  bench run --suite yahoo --learners miser,cronus,cegb
  bench run --data train.svm --test test.svm --costs mine.csv --learners all
  bench best --budget 60
  bench report -o board.html

\b
Lists are given by comma or by repetition (-l miser,cegb or -l miser -l cegb). RUN is 'last',
a run's number or the beginning of its name. Results are kept in results/bench.db (--store,
BENCH_STORE), and finished work is not done twice.

\b
Completion: eval "$(_BENCH_COMPLETE=bash_source bench)"      (or zsh_source, fish_source)
Exit status: 0 all well, 1 some trials or an audit failed, 2 unusable input, 3 a fault of bench,
130 interrupted.
"""


class Verbs(click.Group):
    """Loads the module of a verb only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order of the help."""
        return [verb for verbs in SECTIONS.values() for verb in verbs]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb of that name, which is ``command`` in the module of the same name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        home = {"claims": "bench_claims.command", "cost": "bench_measure.command"}
        command = import_module(home.get(cmd_name, f"bench_core.cli.{cmd_name}")).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with the nearest names for an unknown verb."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from bench_core.errors import unknown

            raise click.UsageError(unknown("verb", name, self.list_commands(ctx)), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs under the headings of ``SECTIONS``."""
        for title, verbs in SECTIONS.items():
            commands = [(verb, self.get_command(ctx, verb)) for verb in verbs]
            with formatter.section(title):
                formatter.write_dl(
                    [(v, c.get_short_help_str(limit=200)) for v, c in commands if c is not None]
                )


def _show_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from bench_core import __version__

        click.echo(f"bench {__version__}")
        ctx.exit()


@click.group(
    cls=Verbs,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def bench() -> None:
    """Compare methods that learn under a test-time budget: quality against what it costs."""
