"""The commands behind the target files: `install VERSION` once, `serve VERSION` for every start; and
`document VERSION RUN_DIR...`, which writes down what runs of it showed."""

from __future__ import annotations

import json
import os
import shutil
from datetime import date
from pathlib import Path

import click

from think_conformance.errors import UsageError
from think_conformance.targets.cloudflare_think.install import NotInstalled, install
from think_conformance.targets.cloudflare_think.recipe import Recipe


class _OneLine(click.Group):
    def invoke(self, ctx: click.Context) -> None:
        try:
            super().invoke(ctx)
        except (NotInstalled, UsageError) as error:
            _tell(str(error))
            ctx.exit(1)


@click.group(cls=_OneLine, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Cloudflare's own Think, in the workerd that npm ships."""


@main.command("install")
@click.argument("version")
def install_(version: str) -> None:
    """Put a version into the cache, bundled and ready to be served."""
    install(Recipe.of(version), _tell)


@main.command()
@click.argument("version")
def serve(version: str) -> None:
    """Become the workerd that serves a version: THINK_PORT and THINK_DATA_DIR say where."""
    recipe = Recipe.of(version)
    if not recipe.complete:
        raise NotInstalled(f"version {version} is not in {recipe.home}: run `install {version}` first")
    port, data_dir = os.environ.get("THINK_PORT"), os.environ.get("THINK_DATA_DIR")
    if not port or not data_dir:
        raise UsageError("THINK_PORT and THINK_DATA_DIR are not set: say where to listen and keep data")
    command = recipe.serve_command(port, data_dir)
    os.execv(command[0], command)


BASELINES = "conformance/think_conformance/targets/cloudflare_think/baselines"


@main.command()
@click.argument("version")
@click.argument(
    "run_dirs", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
def document(version: str, run_dirs: tuple[Path, ...]) -> None:
    """Write docs/cloudflare-think-VERSION.md and the plans of the known deviations, in the folder of the
    project, from runs of all scenarios."""
    # not above: `serve` is on the way of every start of a target, and needs none of it
    from think_conformance.baseline import load
    from think_conformance.targets.cloudflare_think.document import page

    folder, doc = Path(BASELINES), Path(f"docs/cloudflare-think-{version}.md")
    try:
        listed = load((folder / f"{version}.toml").read_text(encoding="utf-8"), version, date.min).entries
        runs = [json.loads((run_dir / "results.json").read_text(encoding="utf-8")) for run_dir in run_dirs]
        plans = {f"{e.case}.json": (run_dirs[0] / "plan" / f"{e.case}.json").read_bytes() for e in listed}
        doc.write_text(page(version, BASELINES, listed, runs), encoding="utf-8")
        shutil.rmtree(folder / version, ignore_errors=True)
        (folder / version).mkdir()
        for name, plan in plans.items():
            (folder / version / name).write_bytes(plan)
    except OSError as error:
        raise UsageError(f"{error}; stand in the folder of the project, with runs of all scenarios") from None


def _tell(text: str) -> None:
    click.echo(text, err=True)


if __name__ == "__main__":
    main(prog_name="python -m think_conformance.targets.cloudflare_think")
