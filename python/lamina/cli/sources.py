"""What the driver compiles: a model in a Python file, a .pt2 file of torch.export, or a prim module in a .mlir file."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from .errors import UserError
from .inputs import InputSpec, dtype_name, make_inputs, random_tensor

if TYPE_CHECKING:
    import torch.fx

    from lamina.frontend.call import CallableProgram
    from lamina.frontend.program import Input

LARGEST_TEXT = 1 << 30


@dataclass
class Source:
    """A program, and arguments for it.

    Attributes:
        name: what messages call it.
        eager: the program as PyTorch runs it; None if there is none.
        arguments: arguments by position and by name, on which it is captured and run.
        import_: makes its prim module, and the ATen graph that it was made of, if any.
        compile: makes it callable on a target.
    """

    name: str
    eager: Optional[Callable[..., Any]]
    arguments: Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]
    import_: Callable[[], tuple[Any, Optional[torch.fx.GraphModule]]]
    compile: Callable[[str], CallableProgram]


@dataclass(frozen=True)
class Request:
    """What the user said about the program.

    Attributes:
        file: ``model.py:Name``, ``model.pt2`` or ``module.mlir``.
        inputs: arguments, in the order given.
        inputs_from: ``model.py:func``, a function that returns the arguments.
        dynamic: ``x:0=batch`` and such.
        freeze: whether weights become constants.
        fallback: "eager" or "error".
        seed: of random inputs.
        schedule: a file of measured choices.
    """

    file: str
    inputs: tuple[InputSpec, ...] = ()
    inputs_from: Optional[str] = None
    dynamic: tuple[str, ...] = ()
    freeze: bool = True
    fallback: str = "error"
    seed: int = 0
    schedule: Optional[str] = None


def open_source(request: Request) -> Source:
    """Finds the program.

    Raises:
        UserError: there is none, or it cannot be loaded.
        CompileError: the text of a .mlir file is wrong.
    """
    path, name = split_reference(request.file)
    if not path.exists():
        raise UserError(f"{path} does not exist")
    if path.is_dir():
        raise UserError(f"{path} is a folder")
    if path.suffix == ".py":
        return _python(path, name, request)
    if name:
        raise UserError(f"{request.file}: only a .py file has names after a colon")
    if path.suffix == ".pt2":
        return _exported(path, request)
    if path.suffix == ".mlir":
        return _text(path, request)
    raise UserError(
        f"{path} is none of: a Python file (model.py:Name), a .pt2 file of torch.export, a .mlir file of prim"
    )


def split_reference(text: str) -> tuple[Path, str]:
    """The file and the name of ``model.py:Name``."""
    file, colon, name = text.rpartition(":")
    if colon and name.replace(".", "_").isidentifier() and "/" not in name and not Path(text).exists():
        return Path(file), name
    return Path(text), ""


def load_name(path: Path, name: str) -> Any:
    """A name of a Python file, which is run.

    Raises:
        UserError: it raises, or has no such name.
    """
    module_name = f"lamina_user_{path.stem}"
    module = sys.modules.get(module_name)
    if module is None or getattr(module, "__file__", None) != str(path.resolve()):
        spec = importlib.util.spec_from_file_location(module_name, path.resolve())
        if spec is None or spec.loader is None:
            raise UserError(f"{path} is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module  # dataclasses and pickling look it up
        sys.path.insert(0, str(path.resolve().parent))
        try:
            with contextlib.redirect_stdout(sys.stderr):
                spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            del sys.modules[module_name]
            raise UserError(f"{_place(error, path)} {path.name} cannot be run: {_said(error)}") from error
        finally:
            sys.path.remove(str(path.resolve().parent))
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            raise UserError(f"{path} has no {name!r}{_names(module)}")
        value = getattr(value, part)
    return value


def _names(module: Any) -> str:
    """What could have been meant."""
    import torch

    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (
            isinstance(value, torch.nn.Module)
            or getattr(value, "__module__", None) == module.__name__
            and callable(value)
        )
    ]
    return f"; it has {', '.join(own)}" if own else ""


def _said(error: BaseException) -> str:
    """An error's type and its first paragraph; torch adds more that is about its own options."""
    text = str(error).strip().split("\n\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _place(error: BaseException, path: Path) -> str:
    """The innermost line of the file that an error passed through."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}:"
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path.resolve()):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{path}:{line}:" if line else f"{path}:"


def _call_user(function: Callable[..., Any], path: Path, what: str, *args: Any, **kwargs: Any) -> Any:
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return function(*args, **kwargs)
    except (Exception, SystemExit) as error:
        raise UserError(f"{_place(error, path)} {what}: {_said(error)}") from error


# ---- Python


def _python(path: Path, name: str, request: Request) -> Source:
    import torch

    if not name:
        raise UserError(f"{path} is a Python file: name the model in it, as {path}:Net")
    model = load_name(path, name)
    if isinstance(model, type):
        if not issubclass(model, torch.nn.Module):
            raise UserError(f"{name} of {path} is a class, but no torch.nn.Module")
        torch.manual_seed(request.seed)
        model = _call_user(model, path, f"{name} cannot be made without arguments")
    if isinstance(model, torch.nn.Module):
        model.eval()
    elif not callable(model):
        raise UserError(f"{name} of {path} is a {type(model).__name__}, and neither a module nor a function")
    args, kwargs = _arguments(model, path, name, request)
    shapes = _dynamic_shapes(model, args, kwargs, request.dynamic)

    def compile(target: str) -> CallableProgram:
        from lamina.frontend.export import compile

        with _capturing(name, path):
            return compile(
                model,
                args,
                kwargs,
                dynamic_shapes=shapes,
                target=target,
                freeze=request.freeze,
                fallback=request.fallback,
                schedule=request.schedule,
            )

    def import_() -> tuple[Any, Any]:
        from lamina.frontend.export import import_program

        with _capturing(name, path):
            program = import_program(model, args, kwargs, dynamic_shapes=shapes, freeze=request.freeze)
        return program.module, program.graph

    return Source(f"{path}:{name}", model, lambda: (args, kwargs), import_, compile)


@contextlib.contextmanager
def _capturing(name: str, path: Path) -> Iterator[None]:
    """Errors name the model and the user's line, and what the model prints is no result."""
    from lamina.errors import CompileError

    try:
        with quiet():
            yield
    except (CompileError, UserError, OSError):
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"{_place(error, path)} {name} cannot be compiled: {_said(error)}") from error


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """What a model prints goes to stderr, and torch logs nothing unless it was asked to."""

    logger = logging.getLogger("torch")
    asked = any(os.environ.get(name, "0") not in ("", "0") for name in ("TORCH_LOGS", "LAMINA_DEBUG"))
    loggers = (
        []
        if asked
        else [logger, *(logging.getLogger(n) for n in list(logging.root.manager.loggerDict) if n.startswith("torch."))]
    )
    before = [(each, each.disabled) for each in loggers]
    try:
        for each in loggers:
            each.disabled = True
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        for each, disabled in before:
            each.disabled = disabled


def _arguments(model: Any, path: Path, name: str, request: Request) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if request.inputs_from is not None:
        if request.inputs:
            raise UserError("--input and --inputs-from exclude each other")
        file, function = split_reference(request.inputs_from)
        if not function:
            raise UserError(f"--inputs-from {request.inputs_from}: name a function, as {request.inputs_from}:inputs")
        if not file.exists():
            raise UserError(f"{file} does not exist")
        value = load_name(file, function)
        if callable(value):
            value = _call_user(value, file, f"{function} failed")
        if isinstance(value, dict):
            return (), value
        if (
            isinstance(value, (tuple, list))
            and len(value) == 2
            and isinstance(value[0], tuple)
            and isinstance(value[1], dict)
        ):
            return value[0], value[1]
        return (tuple(value), {}) if isinstance(value, (tuple, list)) else ((value,), {})
    args, kwargs = make_inputs(request.inputs, request.seed)
    signature = inspect.signature(model.forward if hasattr(model, "forward") else model)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        parameters = ", ".join(str(p) for p in signature.parameters.values())
        raise UserError(
            f"{name} takes ({parameters}): {error}; give --input for each, such as --input f32[2,3]"
        ) from error
    return args, kwargs


def _dynamic_shapes(model: Any, args: tuple, kwargs: dict, dynamic: Sequence[str]) -> Optional[dict[str, Any]]:
    """The dynamic_shapes of torch.export from ``x:0=batch``."""
    if not dynamic:
        return None
    import re

    import torch

    signature = inspect.signature(model.forward if hasattr(model, "forward") else model)
    bound = signature.bind(*args, **kwargs).arguments
    variadic = [p.name for p in signature.parameters.values() if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if any(name in bound for name in variadic):
        raise UserError("--dynamic needs a model whose arguments have names of their own")
    dims: dict[str, Any] = {}
    shapes: dict[str, Any] = {name: None for name in bound}
    for text in dynamic:
        match = re.fullmatch(r"(\w+):(\d+)(?:=([A-Za-z_]\w*)(?::(\d*)(?:\.\.(\d*))?)?)?", text)
        if match is None:
            raise UserError(f"--dynamic {text}: expected ARGUMENT:DIMENSION=NAME, such as x:0=batch or x:0=batch:2..64")
        argument, dim, label, low, high = (
            match[1],
            int(match[2]),
            match[3] or f"{match[1]}_{match[2]}",
            match[4],
            match[5],
        )
        value = bound.get(argument)
        if not isinstance(value, torch.Tensor):
            raise UserError(
                f"--dynamic {text}: no tensor {argument!r} was given; there are {', '.join(bound) or 'none'}"
            )
        if dim >= value.dim():
            raise UserError(f"--dynamic {text}: {argument} has {value.dim()} dimensions")
        if label not in dims:
            bounds = {"min": int(low) if low else None, "max": int(high) if high else None}
            dims[label] = torch.export.Dim(label, **{k: v for k, v in bounds.items() if v is not None})
        shapes[argument] = {**(shapes[argument] or {}), dim: dims[label]}
    return shapes


# ---- .pt2 and .mlir


def _exported(path: Path, request: Request) -> Source:
    from .pt2 import load_pt2

    _refuse(path, request, "dynamic", "inputs_from")
    program = load_pt2(path)
    args, kwargs = make_inputs(request.inputs, request.seed)
    if not request.inputs and program.example_inputs is not None:
        args, kwargs = program.example_inputs

    def compile(target: str) -> CallableProgram:
        from lamina.frontend.export import compile

        return compile(
            program, target=target, freeze=request.freeze, fallback=request.fallback, schedule=request.schedule
        )

    def import_() -> tuple[Any, Any]:
        from lamina.frontend.export import import_program

        imported = import_program(program, freeze=request.freeze)
        return imported.module, imported.graph

    def eager(*args: Any, **kwargs: Any) -> Any:
        return program.module(check_guards=False)(*args, **kwargs)

    return Source(str(path), eager, lambda: (args, kwargs), import_, compile)


def _text(path: Path, request: Request) -> Source:
    from lamina.frontend.text import parse_program, program_of

    _refuse(path, request, "dynamic", "inputs_from")
    module = parse_program(_read_text(path), str(path))
    program = functools.cache(lambda: program_of(module, str(path)))

    def arguments() -> tuple[tuple[Any, ...], dict[str, Any]]:
        import torch

        args, kwargs = make_inputs(request.inputs, request.seed)
        if kwargs:
            raise UserError("the arguments of a .mlir file have no names; give --input by position")
        specs = program().inputs
        if not args and all(isinstance(size, int) for spec in specs for size in spec.sizes):
            generator = torch.Generator().manual_seed(request.seed)
            args = tuple(random_tensor(spec.sizes, spec.dtype, generator) for spec in specs)  # type: ignore[arg-type]
        if len(args) != len(specs):
            types = ", ".join(f"{spec.name}: {_type_text(spec)}" for spec in specs)
            raise UserError(
                f"the @main of {path} takes {_counted(len(specs), 'argument')} ({types}), "
                f"{len(args)} {'was' if len(args) == 1 else 'were'} given by --input"
            )
        return args, kwargs

    def compile(target: str) -> CallableProgram:
        from lamina.frontend.call import CallableProgram
        from lamina.targets import get_target

        executable = get_target(target, request.schedule).compile(program())
        return CallableProgram(program(), executable, None, target, request.schedule)

    return Source(str(path), None, arguments, lambda: (module, None), compile)


def _type_text(spec: Input) -> str:
    """A tensor's type, as --input takes it."""
    return f"{dtype_name(spec.dtype)}[{','.join(map(str, spec.sizes))}]"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _read_text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST_TEXT:
            raise UserError(f"{path} has more than {LARGEST_TEXT} bytes")
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no text: byte {error.start} is not UTF-8") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from error
    if "\0" in text:
        raise UserError(f"{path} is no text: it has a zero byte")
    return text


def _refuse(path: Path, request: Request, *options: str) -> None:
    for option in options:
        if getattr(request, option):
            raise UserError(f"--{option.replace('_', '-')} is for Python files; {path} says it itself")
