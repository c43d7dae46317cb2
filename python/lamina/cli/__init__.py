"""The driver, ``lamina``: results on stdout, all else on stderr.

Exit codes: 0 success; 1 an error in what was given (or results that differ, under --compare); 2 wrong usage; 130
interrupted. LAMINA_DEBUG=1 shows the traceback of an error.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn, Optional

from .errors import UserError


def main(arguments: Optional[Sequence[str]] = None) -> NoReturn:
    """Runs the driver and exits."""
    code = call(arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = code or _SIGPIPE
        _drop_stdout()
    except OSError as error:
        code = 1
        print(f"error: stdout: {error.strerror}", file=sys.stderr)
        _drop_stdout()
    sys.exit(code)


_SIGPIPE = 128 + 13


def _drop_stdout() -> None:
    """Lets the interpreter's own flush at exit succeed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def call(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the driver; returns its exit code."""
    # torch's own use of what it has deprecated is nothing that a user can do something about.
    warnings.filterwarnings("ignore", category=FutureWarning, module="copyreg")
    before = warnings.showwarning
    warnings.showwarning = _show_warning
    try:
        return _call(arguments)
    finally:
        warnings.showwarning = before


def _call(arguments: Optional[Sequence[str]]) -> int:
    import click

    from .commands import lamina

    stdout = sys.stdout
    try:
        result = lamina.main(
            args=None if arguments is None else list(arguments), prog_name="lamina", standalone_mode=False
        )
        return result if isinstance(result, int) else 0
    except click.Abort:
        return _interrupted()
    except KeyboardInterrupt:
        return _interrupted()
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            print(error.ctx.get_usage(), file=sys.stderr)
            print(f"Try '{error.ctx.command_path} --help'.", file=sys.stderr)
        message = error.format_message()
        print(f"error: {message[:1].lower()}{message[1:]}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        _drop_stdout()
        return _SIGPIPE
    except SystemExit as error:
        # On a closed pipe click puts another stdout in place and exits with 1.
        if sys.stdout is stdout or error.code != 1:
            raise
        _drop_stdout()
        return _SIGPIPE
    except UserError as error:
        return _failed(str(error))
    except MemoryError:
        return _failed("there is not enough memory")
    except RecursionError:
        return _failed("the input is nested too deeply")
    except Exception as error:
        return _failed(_described(error))


def _described(error: Exception) -> str:
    from lamina.errors import CompileError, SettingError

    if isinstance(error, (CompileError, SettingError, OSError)):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _failed(message: str) -> int:
    if os.environ.get("LAMINA_DEBUG", "0") not in ("", "0"):
        import traceback

        traceback.print_exc()
    print(f"error: {message}", file=sys.stderr)
    return 1


def _interrupted() -> int:
    print("interrupted", file=sys.stderr)
    return 130


def _show_warning(message, category, filename, lineno, file=None, line=None) -> None:
    print(f"warning: {message}", file=sys.stderr)
