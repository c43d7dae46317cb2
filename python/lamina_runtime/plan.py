"""The launch plan of a package, read and checked: kernels of each chip, host functions, and the interface of calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import expressions, structure
from .archive import CONSTANTS, PLAN, Archive, part_folder
from .errors import PackageError

ARENA = "arena"
_MOST_PARTS = 1 << 16
SCALARS = {"i1": 1, "i32": 31, "i64": 63, "f32": 32}
"""Types of the scalar arguments of kernels, and how many bits their values may have, less a sign; of floats, their bits."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of one chip.

    Attributes:
        name: in the plan.
        entry: of its entry point.
        file: the entry of the package that is its image: a cubin, or PTX.
        warps: of each program.
        shared: bytes of shared memory of a program.
        scratch, scratch_alignment: bytes of global memory of a program, and of what they are a multiple.
        pointers: element types of the arguments that are pointers.
        scalars: types of those after them, which are values of symbols.
        places: positions of the pointers among both, if they are not the first.
        hidden: pointers after those, to scratch memory (the first) and to what is not used.
        registers, spills: of a thread, in registers and bytes; None where it is not known.
        warp_size: threads of a warp.
    """

    name: str
    entry: str
    file: str
    warps: int
    shared: int
    scratch: int
    scratch_alignment: int
    pointers: tuple[str, ...]
    scalars: tuple[str, ...]
    hidden: int
    registers: Optional[int] = None
    spills: Optional[int] = None
    warp_size: int = 32
    places: Optional[tuple[int, ...]] = None

    @property
    def threads(self) -> int:
        """Threads of a program."""
        return self.warps * self.warp_size


@dataclass(frozen=True)
class Memory:
    """Where an argument of a launch lies.

    Attributes:
        base: the number of an argument of the host function, or ARENA.
        offset: in bytes from its start.
        extent: elements from the first to the last that the kernel may touch.
    """

    base: Union[int, str]
    offset: Any
    extent: Any


@dataclass(frozen=True)
class Launch:
    """A launch: `grid` programs of a kernel, if it has one axis; `line` is where in the user's code it comes from."""

    kernel: str
    grid: Any
    arguments: tuple[Memory, ...]
    symbols: tuple[Any, ...]
    line: Optional[str] = None
    axes: Optional[tuple[Any, Any, Any]] = None


@dataclass(frozen=True)
class Host:
    """A host function: arguments (None, or the key of the constant that it is), then results.

    Attributes:
        constants: of each argument.
        results: bytes of each result.
        arena: bytes of temporary memory.
        launches: in order.
    """

    constants: tuple[Optional[str], ...]
    results: tuple[Any, ...]
    arena: Any
    launches: tuple[Launch, ...]


@dataclass(frozen=True)
class Image:
    """What runs on a chip: its kernels by name, and the host functions ``main`` and perhaps ``init``."""

    chip: str
    kernels: dict[str, Kernel]
    hosts: dict[str, Host]


@dataclass(frozen=True)
class Package:
    """A package that was read.

    Attributes:
        archive: its entries.
        call: the interface of calls.
        images: by chip.
        ptx: the image for other chips.
        weights: dtype, sizes and order of dimensions in memory of each constant that it does not hold.
        parts: of a split program, those that are compiled.
    """

    archive: Archive
    call: dict[str, Any]
    images: dict[str, Image]
    ptx: Optional[Image]
    weights: dict[str, dict[str, Any]]
    parts: Optional[list[Package]] = None

    @property
    def symbols(self) -> int:
        """How many index symbols there are."""
        return len(self.call["symbols"])


def read_package(archive: Archive) -> Package:
    """The package of an archive.

    Raises:
        PackageError: its plan is damaged.
    """
    plan = archive.json(PLAN)
    with checking(archive.name):
        return _read(archive, plan)


@contextlib.contextmanager
def checking(name: str) -> Iterator[None]:
    """Turns what goes wrong with a plan of another form into a PackageError of the package's name."""
    try:
        yield
    except PackageError as error:
        raise PackageError(f"{name}: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise PackageError(f"{name}: {PLAN} is damaged: {error!r}") from error


def _read(archive: Archive, plan: dict[str, Any]) -> Package:
    call = plan["call"]
    symbols = len(call["symbols"])
    split = "steps" in plan
    programs = [
        {name: _host(host, symbols if name == "main" or split else 0) for name, host in each.items()}
        for each in plan["programs"]
    ]
    images = {
        key: _image(archive, facts.get("chip", key), facts, programs[facts["program"]], split)
        for key, facts in plan["chips"].items()
    }
    ptx = images.pop("ptx", None)
    if not images and ptx is None:
        raise PackageError("it is for no chip at all")
    archive[CONSTANTS]
    _check_call(call)
    parts = [_read(part, part.json(PLAN)) for part in read_parts(archive)] if split else []
    return Package(archive, call, images, ptx, _weights(plan.get("weights", {})), parts if split else None)


def _weights(data: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    for name, facts in data.items():
        sizes = facts["sizes"]
        if any(type(size) is not int or size < 0 for size in sizes) or sorted(facts["order"]) != list(
            range(len(sizes))
        ):
            raise PackageError(f"the plan has a weight {name} that is not described")
    return data


_CONTENTS = {"tensor": "sizes", "size": "size", "value": "value"}
"""What an argument of each kind has."""


def _check_call(call: dict[str, Any]) -> None:
    """Everything that the interface names must be there."""
    if structure.check(call["arguments"]) != len(call["inputs"]):
        raise PackageError("the plan has a structure of arguments that does not fit them")
    if structure.check(call["returns"]) != len(call["returned"]):
        raise PackageError("the plan has a structure of results that does not fit them")
    kinds = {"input": call["inputs"], "result": call["results"], "tensor": call["tensors"]}
    named = [(kind, each[kind]) for each in [*call["sources"], *call["mutations"]] for kind in kinds if kind in each]
    named += [(each["kind"], each.get("index", each.get("key"))) for each in call["returned"] if each["kind"] in kinds]
    for kind, key in named:
        known = kinds[kind] if isinstance(kinds[kind], dict) else range(len(kinds[kind]))
        if key not in known:
            raise PackageError(f"the plan names the {kind} {key!r}, which there is not")
    symbols = len(call["symbols"])
    for bounds in call["symbols"]:
        if type(bounds["min"]) is not int or type(bounds["max"]) not in (int, type(None)):
            raise PackageError("the plan has a symbol without a range")
    for spec in call["inputs"]:
        if type(spec["name"]) is not str or _CONTENTS[spec["kind"]] not in spec:
            raise PackageError("the plan has an argument that is not described")
    for spec in [*call["inputs"], *call["results"], *call["returned"]]:
        for expr in [*spec.get("sizes", []), *spec.get("strides", []), *([spec["size"]] if "size" in spec else [])]:
            expressions.check(expr, symbols)


def _host(data: dict[str, Any], symbols: int) -> Host:
    size = lambda expr: expressions.check(expr, symbols)  # noqa: E731
    count = len(data["constants"]) + len(data["results"])
    if not all(key is None or type(key) is str for key in data["constants"]):
        raise PackageError("the plan has constants without names")
    launches = []
    for launch in data["launches"]:
        arguments = [Memory(m["base"], size(m["offset"]), size(m["extent"])) for m in launch["arguments"]]
        for memory in arguments:
            if memory.base != ARENA and not (type(memory.base) is int and 0 <= memory.base < count):
                raise PackageError(f"the plan has {memory.base!r} where an argument must be")
        launches.append(
            Launch(
                launch["kernel"],
                size(launch["grid"]),
                tuple(arguments),
                tuple(size(expr) for expr in launch["symbols"]),
                launch.get("line"),
                _axes([size(expr) for expr in launch["axes"]]) if "axes" in launch else None,
            )
        )
    return Host(
        tuple(data["constants"]),
        tuple(size(result["bytes"]) for result in data["results"]),
        size(data["arena"]),
        tuple(launches),
    )


def _axes(axes: list[Any]) -> tuple[Any, Any, Any]:
    if len(axes) != 3:
        raise PackageError("the plan has a grid that has not three axes")
    return (axes[0], axes[1], axes[2])


def _image(archive: Archive, chip: str, facts: dict[str, Any], hosts: dict[str, Host], split: bool) -> Image:
    if "main" not in hosts and not split:
        raise PackageError("the plan has no function main")
    kernels = {name: read_kernel(archive, name, data) for name, data in facts["kernels"].items()}
    for host in hosts.values():
        for launch in host.launches:
            kernel = kernels.get(launch.kernel)
            if kernel is None:
                raise PackageError(f"the plan launches {launch.kernel}, which is no kernel of {chip}")
            if len(launch.arguments) != len(kernel.pointers) or len(launch.symbols) < len(kernel.scalars):
                raise PackageError(f"a launch of {launch.kernel} has the wrong number of arguments")
    return Image(chip, kernels, hosts)


def read_kernel(archive: Archive, name: str, data: dict[str, Any]) -> Kernel:
    """A kernel as the plan describes it.

    Raises:
        PackageError: it is damaged.
    """
    archive[data["file"]]
    for scalar in data["scalars"]:
        if scalar not in SCALARS:
            raise PackageError(f"the kernel {name} has an argument of type {scalar!r}")
    numbers = ("warps", "warp_size", "shared", "scratch", "scratch_alignment", "hidden")
    data = {"warp_size": 32, **data}
    if any(type(data[key]) is not int or data[key] < 0 for key in numbers):
        raise PackageError(f"the kernel {name} has sizes that are no numbers")
    return Kernel(
        name=name,
        entry=data["entry"],
        file=data["file"],
        pointers=tuple(data["pointers"]),
        scalars=tuple(data["scalars"]),
        registers=data.get("registers"),
        spills=data.get("spills"),
        places=_places(data),
        **{key: data[key] for key in numbers},
    )


def _places(data: dict[str, Any]) -> Optional[tuple[int, ...]]:
    places = data.get("places")
    if places is None:
        return None
    known = range(len(data["pointers"]) + len(data["scalars"]))
    if len(set(places)) != len(data["pointers"]) or not all(type(p) is int and p in known for p in places):
        raise PackageError("the plan has a kernel whose arguments have no places")
    return tuple(places)


def read_parts(archive: Archive) -> list[Archive]:
    """The parts of a split program, as archives."""
    count = archive.json(PLAN)["parts"]
    if type(count) is not int or not 0 <= count <= _MOST_PARTS:
        raise PackageError(f"the plan has {count!r} parts")
    return [archive.under(part_folder(number)) for number in range(count)]


def chip_number(chip: str) -> int:
    """90 of ``sm_90``."""
    return int(chip.removeprefix("sm_"))


def chip_name(capability: Union[int, str]) -> str:
    """The chip of a device: ``sm_90`` for 90; of one that is not CUDA's, its name."""
    return f"sm_{capability}" if isinstance(capability, int) else capability


def is_cuda(package: Package) -> bool:
    """Whether anything in the package is for a chip of CUDA."""
    return package.ptx is not None or any(chip.startswith("sm_") for chip in package.images)


def contents(package: Package) -> str:
    """The chips that a package is for, for messages."""
    cuda = sorted((chip for chip in package.images if chip.startswith("sm_")), key=chip_number)
    have = ", ".join([*cuda, *sorted(set(package.images) - set(cuda))]) or "no chip"
    ptx = f" and PTX of {package.ptx.chip}" if package.ptx is not None else ""
    return f"{package.archive.name} has machine code for {have}{ptx}"


def choose_image(package: Package, capability: Union[int, str]) -> Image:
    """The image for a device.

    Machine code runs on the chip that it is made for; that of CUDA below 9.0 also on later ones of the same generation.

    Args:
        package: the package.
        capability: the device's, 90 for 9.0; of a device that is not CUDA's, the chip's name.

    Raises:
        PackageError: there is none.
    """
    name = chip_name(capability)
    if name in package.images:
        return package.images[name]
    if isinstance(capability, int):
        chips: Sequence[int] = sorted(chip_number(chip) for chip in package.images if chip.startswith("sm_"))
        same = [chip for chip in chips if chip // 10 == capability // 10 and chip <= capability < 90]
        if same:
            return package.images[f"sm_{same[-1]}"]
        if package.ptx is not None and capability >= chip_number(package.ptx.chip):
            return package.ptx
    raise PackageError(f"{contents(package)}, and none that runs on this device, which is {name}")
