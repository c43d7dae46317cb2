"""What a package holds, as text; no device is needed."""

from __future__ import annotations

from typing import Any

from .archive import CONSTANTS
from .plan import Image, Package
from .tensors import header


def describe(package: Package) -> str:
    """Versions, chips, arguments, results, constants, kernels and launches of a package."""
    manifest, call = package.archive.manifest, package.call
    versions = ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())
    chips = sorted(package.images) + ([f"others from {package.ptx.chip} on, by PTX"] if package.ptx is not None else [])
    constants = header(package.archive[CONSTANTS])
    total = sum(end - start for start, end in (facts["data_offsets"] for facts in constants.values()))
    lines = [
        f"{package.archive.name}: a program compiled by Lamina (format {manifest['format']})",
        f"  made by     {versions}",
        f"  runs on     {', '.join(chips)}",
        f"  constants   {len(constants)} tensors, {total} bytes",
    ]
    if package.weights:
        lines.append(f"  left out    {len(package.weights)} weights, which are given to load")
    for number, bounds in enumerate(call["symbols"]):
        high = "" if bounds["max"] is None else f" to {bounds['max']}"
        lines.append(f"  size s{number}     from {bounds['min']}{high or ' up'}")
    lines += [f"  argument    {_input(spec)}" for spec in call["inputs"]]
    lines += [f"  result      {_tensor(result)}" for result in call["results"]]
    lines += [f"  raises      {message}" for message in call["checks"]]
    lines += _images(package)
    for number, part in enumerate(package.parts or []):
        lines.append(f"part {number}:")
        lines += [f"  {line}" for line in _images(part)]
    return "\n".join(lines)


def _images(package: Package) -> list[str]:
    images = [*package.images.items(), *([(f"{package.ptx.chip} (PTX)", package.ptx)] if package.ptx else [])]
    return [line for name, image in images for line in _image(name, image, package)]


def _image(name: str, image: Image, package: Package) -> list[str]:
    lines = [f"{name}:"]
    width = max((len(kernel) for kernel in image.kernels), default=0)
    for kernel in image.kernels.values():
        facts = f"{kernel.threads} threads, {kernel.shared} bytes shared"
        if kernel.registers is not None:
            facts += f", {kernel.registers} registers"
        if kernel.spills:
            facts += f", spills {kernel.spills} bytes"
        lines.append(f"  kernel {kernel.name.ljust(width)}  {facts}, {len(package.archive[kernel.file])} bytes of code")
    for label, host in image.hosts.items():
        lines.append(f"  {label}: {len(host.launches)} launches, arena of {text(host.arena)} bytes")
        for launch in host.launches:
            line = f"  ({launch.line})" if launch.line else ""
            lines.append(f"    {launch.kernel} on {text(launch.grid)} programs{line}")
    return lines


def _input(spec: dict[str, Any]) -> str:
    if spec["kind"] == "tensor":
        return f"{spec['name']}: {_tensor(spec)}"
    return f"{spec['name']}: {text(spec['size']) if spec['kind'] == 'size' else repr(spec['value'])}"


def _tensor(spec: dict[str, Any]) -> str:
    return f"{spec['dtype']}[{', '.join(text(size) for size in spec['sizes'])}]"


def text(expr: Any) -> str:
    """An expression as people write it."""
    if not isinstance(expr, list):
        return str(expr)
    parts = [text(operand) for operand in expr[1:]]
    if expr[0] in ("max", "min", "cdiv"):
        return f"{expr[0]}({', '.join(parts)})"
    return "(" + f" {expr[0]} ".join(parts) + ")"
