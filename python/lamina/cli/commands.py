"""The driver's commands."""

from __future__ import annotations

import click

from .compile import compile_command
from .environment import cache_command, targets_command, version_command
from .run import run_command

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=_SETTINGS)
def lamina() -> None:
    """Compiles and runs PyTorch programs through MLIR.

    \b
    Examples:
      lamina compile model.py:Net --input f32[32,512]
      lamina compile model.py:Net --input f32[32,512] --emit fused
      lamina run model.py:Net --input f32[32,512] --compare eager
    """


lamina.add_command(compile_command)
lamina.add_command(run_command)
lamina.add_command(targets_command)
lamina.add_command(cache_command)
lamina.add_command(version_command)
