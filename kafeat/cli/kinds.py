"""`kafeat kinds`."""

from __future__ import annotations

import click

from kafeat.cli import options
from kafeat.cli.command import command

# The kinds that most tables need, most used first. All others follow alphabetically.
_FIRST = ("nystroem", "fourier", "homogeneous", "standardize", "quantile", "one_hot", "impute", "ridge")


@command(
    "List the kinds of steps, or show one.",
    """Examples:
  kafeat kinds
  kafeat kinds fourier
""",
)
@click.argument("kind", type=options.KIND, required=False)
def kinds(kind: str | None) -> None:
    """List what each kind of step is for, or show the formula, parameters, bounds and defaults of one KIND."""
    from kafeat import registry

    if kind is None:
        _list()
    else:
        registry.check_kind(kind)
        _show(kind)


def _list() -> None:
    from kafeat import registry
    from kafeat.contract.describe import purpose

    width = max(map(len, registry.kinds()))
    for title, kinds in (
        ("samplers", registry.samplers()),
        ("scalers", registry.scalers()),
        ("predictors, as the last step", registry.predictors()),
    ):
        click.echo(f"{title}:")
        for kind in sorted(kinds, key=lambda one: (_FIRST.index(one) if one in _FIRST else len(_FIRST), one)):
            click.echo(f"  {kind:<{width}}  {purpose(registry.step_class(kind))}")
    click.echo(
        "\nThe first ones suit most tables. `kafeat kinds KIND` shows the formula and the parameters of one."
    )


def _show(kind: str) -> None:
    from inspect import getdoc

    from kafeat.contract.describe import purpose
    from kafeat.registry import accepted, step_class

    step = step_class(kind)
    click.echo(f"{kind}: {purpose(step)}\n\n{getdoc(step)}\n")
    if not step.model_fields:
        click.echo("It has no parameters.")
        return
    click.echo("parameters:")
    for name, field in step.model_fields.items():
        click.echo(f"  {name}: {field.description}")
        default = "required" if field.is_required() else f"default: {_spelled(field.default)}"
        click.echo(f"      {accepted(name, field)}; {default}")


def _spelled(default: object) -> str:
    """Spell a default value. For a list, spell its elements."""
    from kafeat.contract.describe import spell

    return ", ".join(map(str, default)) if isinstance(default, tuple) and default else spell(default)
