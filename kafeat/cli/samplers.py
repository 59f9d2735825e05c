"""`kafeat samplers`."""

from __future__ import annotations

import click

from kafeat.cli import options


@click.command(
    epilog="""\b
Examples:
  kafeat samplers
  kafeat samplers fourier
"""
)
@click.argument("kind", type=options.KIND, required=False)
def samplers(kind: str | None) -> None:
    """List the kinds of steps; with KIND, what it computes and its parameters, bounds and defaults."""
    from kafeat import registry

    if kind is None:
        width = max(map(len, registry.kinds()))
        for title, kinds in (("samplers", registry.samplers()), ("scalers", registry.scalers())):
            click.echo(f"{title}:")
            for name in kinds:
                click.echo(f"  {name:<{width}}  {_headline(name)}")
        click.echo("\nkafeat samplers KIND shows the parameters of one.")
        return
    registry.check_kind(kind)
    _show(kind)


def _headline(kind: str) -> str:
    from kafeat.registry import step_class

    return (step_class(kind).__doc__ or "").strip().splitlines()[0]


def _show(kind: str) -> None:
    from inspect import getdoc

    from kafeat.contract.describe import spell
    from kafeat.registry import accepted, step_class

    step = step_class(kind)
    click.echo(f"kind: {kind}\n\n{getdoc(step)}\n")
    if not step.model_fields:
        click.echo("It has no parameters.")
        return
    click.echo("parameters:")
    for name, field in step.model_fields.items():
        click.echo(f"  {name}: {field.description}")
        default = "required" if field.is_required() else f"default: {spell(field.default)}"
        click.echo(f"      {accepted(name, field)}; {default}")
