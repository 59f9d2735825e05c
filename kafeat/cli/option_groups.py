"""The groups in which the help of a command lists its options."""

from __future__ import annotations

import click

from kafeat.cli.command import long_name

_CLUSTERS = "Many files and clusters"
_GROUPS = {
    "Input": ("--input-format", "--delimiter", "--no-header", "--limit"),
    "Output": (
        "--output-format", "--layout", "--prefix", "--compression", "--output-dtype", "--overwrite", "--fsync",
        "--json", "--report", "--stats", "--dry-run",
    ),
    "Bad rows and drift": ("--on-bad-rows", "--rejects", "--max-bad-rows", "--max-drift", "--drift-test"),
    _CLUSTERS: ("--rows-per-file", "--resume", "--engine", "--scheduler"),
    "Messages": ("--log-format", "--quiet", "--verbose", "--color", "--help"),
}  # fmt: skip
_OWN = "Options"
# The help of a command with fewer options than this is one list.
_FEW = 12


class GroupedCommand(click.Command):
    """A command whose help lists many options in groups: its own ones first, then those that commands share."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        every = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        if len(every) < _FEW:
            super().format_options(ctx, formatter)
            return
        names = set(map(long_name, every))
        for group in (_OWN, *_GROUPS):
            of_group = (
                one.get_help_record(ctx) for one in every if _group_of(long_name(one), names) == group
            )
            rows = [record for record in of_group if record is not None]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)


def _group_of(name: str, names: set[str]) -> str:
    """Return the group of an option of a command with options of these names."""
    for group, members in _GROUPS.items():
        if name in members and (group != _CLUSTERS or "--engine" in names):
            return group
    return _OWN
