"""The driver's commands."""

from __future__ import annotations

from typing import Optional

import click

from .compile import compile_command
from .environment import cache_command, targets_command, version_command
from .run import run_command
from .tune import tune_command

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=_SETTINGS, invoke_without_command=True)
@click.pass_context
def lamina(context: click.Context) -> Optional[int]:
    """Compiles and runs PyTorch programs through MLIR.

    \b
    Examples:
      lamina compile model.py:Net --input f32[32,512]
      lamina compile model.py:Net --input f32[32,512] --emit fused
      lamina run model.py:Net --input f32[32,512] --compare eager
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        return 2
    from lamina import settings

    settings.check()
    return None


lamina.add_command(compile_command)
lamina.add_command(run_command)
lamina.add_command(tune_command)
lamina.add_command(targets_command)
lamina.add_command(cache_command)
lamina.add_command(version_command)
