"""``lamina targets``, ``lamina cache`` and ``lamina version``: what is installed, and what is kept."""

from __future__ import annotations

import click

from .output import bytes_text, table


@click.command("targets")
def targets_command() -> None:
    """Lists the targets that are installed, and the phases and code that each makes.

    \b
    Example:
      lamina targets
    """
    from lamina.compiler import phases_of
    from lamina.errors import CompileError
    from lamina.targets import get_target, target_names

    rows = []
    for name in target_names():
        try:
            target = get_target(name)
            phases = " ".join(phases_of(target))
            description = getattr(target, "description", None)
            rows.append([name, getattr(description, "name", ""), phases])
        except (CompileError, RuntimeError, OSError) as error:
            rows.append([name, "unusable", str(error).splitlines()[0]])
    print(table(rows))


@click.group("cache", invoke_without_command=True)
@click.pass_context
def cache_command(context: click.Context) -> None:
    """Shows where compiled programs are kept, how many there are and their bytes.

    LAMINA_CACHE_DIR is the folder, LAMINA_CACHE_SIZE its largest size, and LAMINA_CACHE=0 turns it off.

    \b
    Examples:
      lamina cache
      lamina cache clear
    """
    if context.invoked_subcommand is not None:
        return
    from lamina import cache

    entries = cache.entries()
    print(
        table(
            [
                ["path", str(cache.folder()) + ("" if cache.enabled() else " (off: LAMINA_CACHE)")],
                ["entries", str(len(entries))],
                ["bytes", f"{sum(size for _, size, _ in entries)} of at most {cache.limit()}"],
            ]
        )
    )


@cache_command.command("clear")
def clear_command() -> None:
    """Removes all that is kept.

    \b
    Example:
      lamina cache clear
    """
    from lamina import cache

    count, size = cache.clear()
    print(f"removed {count} entries, {bytes_text(size)}")


@click.command("version")
def version_command() -> None:
    """Prints the versions of Lamina and of what it is built on.

    \b
    Example:
      lamina version
    """
    import importlib.metadata
    import platform

    rows = []
    for name, package in [
        ("lamina", "lamina"),
        ("mlir", "xtc-mlir-python-bindings"),
        ("torch", "torch"),
        ("triton", "triton"),
    ]:
        try:
            rows.append([name, importlib.metadata.version(package)])
        except importlib.metadata.PackageNotFoundError:
            rows.append([name, "not installed"])
    rows.append(["python", platform.python_version()])
    print(table(rows))
