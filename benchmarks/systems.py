"""The systems that are compared: how each makes a call of a workload, and gives its results back as torch tensors."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch
import torch.nn as nn

from .workloads import Workload, as_tuple, functional, runner

Call = Callable[[], Any]


class System(Protocol):
    """One compiler, or none.

    Attributes:
        name: its column.
        needs: Python packages without which it is left out.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]

    def load(self) -> None:
        """Imports what a user of the system would import; counted as part of a cold start."""

    def prepare(self, workload: Workload, module: nn.Module, inputs: tuple, folder: Path) -> Call:
        """A call of the workload; may keep files in `folder`, and use those that an earlier process left there."""

    def results(self, value: Any) -> tuple[torch.Tensor, ...]:
        """The tensors in what a call returned."""


class _Torch:
    """What returns torch tensors."""

    name: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()

    def load(self) -> None:
        pass

    def results(self, value: Any) -> tuple[torch.Tensor, ...]:
        return as_tuple(value)


class Eager(_Torch):
    """PyTorch as it is."""

    name = "eager"

    def prepare(self, workload: Workload, module: nn.Module, inputs: tuple, folder: Path) -> Call:
        return runner(workload, module, module, inputs)


class Inductor(_Torch):
    """torch.compile with its default backend; its cache is the folder's."""

    name = "inductor"

    def load(self) -> None:
        import torch._dynamo  # noqa: F401
        import torch._inductor.compile_fx  # noqa: F401

    def prepare(self, workload: Workload, module: nn.Module, inputs: tuple, folder: Path) -> Call:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
        return runner(workload, torch.compile(module), module, inputs)


class Lamina(_Torch):
    """torch.compile with Lamina's backend."""

    name = "lamina"

    def load(self) -> None:
        import torch._dynamo  # noqa: F401

        import lamina.frontend.dynamo
        import lamina.targets.cpu  # noqa: F401

    def prepare(self, workload: Workload, module: nn.Module, inputs: tuple, folder: Path) -> Call:
        # The backend itself, so that an installed copy of another version is not found by the name.
        from lamina.frontend.dynamo import backend

        return runner(workload, torch.compile(module, backend=backend), module, inputs)


class LaminaFrozen(_Torch):
    """Lamina ahead of time: weights are constants, folded and packed once."""

    name = "lamina_frozen"

    def load(self) -> None:
        import lamina.frontend.export
        import lamina.targets.cpu  # noqa: F401

    def prepare(self, workload: Workload, module: nn.Module, inputs: tuple, folder: Path) -> Call:
        import lamina

        module, inputs = functional(workload, module, inputs)
        with torch.no_grad():
            program = lamina.compile(module, inputs)

        def call() -> Any:
            with torch.no_grad():
                return program(*inputs)

        return call


class OnnxRuntime:
    """torch.onnx.export and ONNX Runtime's CPU provider, on buffers that are bound once."""

    name: ClassVar[str] = "onnxruntime"
    needs: ClassVar[tuple[str, ...]] = ("onnxruntime", "onnx", "onnxscript")

    def load(self) -> None:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401

    def prepare(self, workload: Workload, module: nn.Module, inputs: tuple, folder: Path) -> Call:
        import onnxruntime

        path = folder / "model.onnx"
        module, inputs = functional(workload, module, inputs)
        if not path.exists():
            with torch.no_grad():
                exported = torch.onnx.export(module, inputs, dynamo=True, optimize=True, verbose=False)
            assert exported is not None
            exported.save(str(path), external_data=workload.model)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = torch.get_num_threads(), 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        # ONNX Runtime reads these arrays at each call.
        self.arrays = [_array(x) for x in inputs]
        for description, array, tensor in zip(session.get_inputs(), self.arrays, inputs):
            binding.bind_ortvalue_input(description.name, _ort_value(array, tensor.dtype))
        for description in session.get_outputs():
            binding.bind_output(description.name, "cpu")

        def call() -> Any:
            session.run_with_iobinding(binding)
            return binding

        return call

    def results(self, value: Any) -> tuple[torch.Tensor, ...]:
        return tuple(torch.from_numpy(output.numpy().copy()) for output in value.get_outputs())


def _array(tensor: torch.Tensor) -> Any:
    """A NumPy array of the tensor's values; of its bits, if NumPy has no such type."""
    tensor = tensor.detach().contiguous()
    return tensor.view(torch.uint16).numpy() if tensor.dtype is torch.bfloat16 else tensor.numpy()


def _ort_value(array: Any, dtype: torch.dtype) -> Any:
    import onnx
    import onnxruntime

    if dtype is torch.bfloat16:
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, onnx.TensorProto.BFLOAT16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


class IREE:
    """torch-mlir's importer and IREE's compiler for the CPU, with its optimisations turned on."""

    name: ClassVar[str] = "iree"
    needs: ClassVar[tuple[str, ...]] = ("iree.compiler", "iree.runtime", "torch_mlir")
    FLAGS = ["--iree-opt-level=O3", "--iree-opt-data-tiling", "--iree-llvmcpu-enable-ukernels=all"]

    def load(self) -> None:
        import iree.compiler  # noqa: F401
        import iree.runtime  # noqa: F401
        from torch_mlir import fx  # noqa: F401

    def prepare(self, workload: Workload, module: nn.Module, inputs: tuple, folder: Path) -> Call:
        import iree.runtime

        module, inputs = functional(workload, module, inputs)
        path = folder / "model.vmfb"
        if not path.exists():
            self._compile(module, inputs, path)
        iree.runtime.flags.parse_flags(f"--task_topology_group_count={torch.get_num_threads()}")
        config = iree.runtime.Config("local-task")
        compiled = iree.runtime.VmModule.mmap(config.vm_instance, str(path))
        function = iree.runtime.load_vm_module(compiled, config)["main"]
        arguments = [iree.runtime.asdevicearray(config.device, _typed_array(x)) for x in inputs]
        return lambda: function(*arguments)

    def _compile(self, module: nn.Module, inputs: tuple, path: Path) -> None:
        import iree.compiler.tools
        from torch_mlir import fx

        for part in module.modules():
            # torch-mlir's importer finds no value for a buffer that is not in the state.
            part._non_persistent_buffers_set.clear()
        source = path.with_suffix(".mlirbc")
        with open(source, "wb") as file:
            fx.export_and_import(module, *inputs, output_type="torch", func_name="main").operation.write_bytecode(file)
        tool = iree.compiler.tools.binaries.find_tool("iree-compile")
        target = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
        processor = f"--iree-llvmcpu-target-cpu={os.environ.get('IREE_TARGET_CPU', 'host')}"
        flags = [*target, processor, "--iree-input-type=torch", *self.FLAGS]
        done = subprocess.run([tool, str(source), "-o", str(path), *flags], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"iree-compile: {done.stderr[:500]}")

    def results(self, value: Any) -> tuple[torch.Tensor, ...]:
        outputs = value if isinstance(value, (tuple, list)) else (value,)
        return tuple(torch.tensor(output.to_host().astype("float64")) for output in outputs)


def _typed_array(tensor: torch.Tensor) -> Any:
    """A NumPy array of the tensor's values, in a type that has the tensor's name."""
    if tensor.dtype is not torch.bfloat16:
        return _array(tensor)
    import ml_dtypes

    return _array(tensor).view(ml_dtypes.bfloat16)


SYSTEMS: dict[str, type[System]] = {
    system.name: system for system in (LaminaFrozen, Lamina, Eager, Inductor, OnnxRuntime, IREE)
}


def missing(name: str) -> str:
    """The first package that a system needs and that is not installed, or nothing."""
    return next((package for package in SYSTEMS[name].needs if not _installed(package)), "")


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False
