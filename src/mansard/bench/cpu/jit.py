"""LLVM text to machine code, through llvmlite: the only module that knows it."""

import ctypes
import dataclasses
from typing import Any

from mansard.errors import DeviceError

#: Signature of ``measure``: gate, threads, patience, clock links, times, arguments of the kernel.
_MEASURE = (ctypes.c_void_p, *[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 2)


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """What code is made for.

    Attributes:
        triple: e.g. ``x86_64-unknown-linux-gnu``.
        cpu: LLVM's name of the micro-architecture.
        features: LLVM's list of features, ``+avx2,+fma``.
    """

    triple: str
    cpu: str
    features: str


@dataclasses.dataclass(frozen=True, slots=True)
class Kernel:
    """Machine code that can be called, and its text.

    Attributes:
        measure: native entry; ctypes releases the interpreter lock while it runs.
        assembly: the same code as text, for the check.
        engine: owner of the code; it lives as long as this.
    """

    measure: Any
    assembly: str
    engine: Any


def versions() -> dict[str, str]:
    """Versions of llvmlite and of its LLVM; empty where it cannot be loaded."""
    try:
        llvm = _llvm()
    except DeviceError:
        return {}
    import llvmlite  # noqa: PLC0415

    return {
        "llvmlite": str(llvmlite.__version__),
        "llvm": ".".join(str(part) for part in llvm.llvm_version_info),
    }


def host_target() -> Target:
    """The processor that we run on, as LLVM sees it."""
    llvm = _llvm()
    return Target(
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )


def assembly(text: str, target: Target) -> str:
    """Assembly of a module for any target that LLVM was built with.

    Raises:
        DeviceError: LLVM has no such target, or refuses the text.
    """
    llvm = _llvm()
    if " asm " in text and _is_foreign(llvm, target):
        # LLVM would end the process: llvmlite has the assembly parser of this machine alone.
        raise DeviceError(f"Inline assembly cannot be compiled for {target.triple} here.")
    return str(_machine(llvm, target).emit_assembly(_parse(llvm, text)))


def compile_kernel(text: str, target: Target) -> Kernel:
    """Compile a module for this machine.

    The module is parsed twice: emitting assembly changes a module, and both must be equal.

    Raises:
        DeviceError: llvmlite is missing or refuses the text.
    """
    llvm = _llvm()
    listing = assembly(text, target)
    engine = llvm.create_mcjit_compiler(_parse(llvm, text), _machine(llvm, target))
    engine.finalize_object()
    entry = ctypes.CFUNCTYPE(ctypes.c_int, *_MEASURE)(engine.get_function_address("measure"))
    return Kernel(entry, listing, engine)


def _llvm() -> Any:
    try:
        from llvmlite import binding  # noqa: PLC0415
    except (ImportError, OSError) as error:
        raise DeviceError(
            f"llvmlite cannot be loaded ({error}). CPU ceilings need it: pip install llvmlite",
            slug="cpu-llvmlite",
        ) from error
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.initialize_native_asmparser()
    return binding


def _is_foreign(llvm: Any, target: Target) -> bool:
    here: str = llvm.get_process_triple()
    return target.triple.partition("-")[0] != here.partition("-")[0]


def _machine(llvm: Any, target: Target) -> Any:
    if _is_foreign(llvm, target):
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    try:
        found = llvm.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise DeviceError(f"LLVM has no target {target.triple!r}: {error}") from error
    return found.create_target_machine(cpu=target.cpu, features=target.features, opt=3)


def _parse(llvm: Any, text: str) -> Any:
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise DeviceError(f"LLVM does not accept the kernel: {error}") from error
    return module
