"""Short names of kernels: what a person would call them, out of C++ names of hundreds of letters.

The name of the function stays; return type, namespaces, template arguments and parameters go.
Where the function only carries another one (``vectorized_elementwise_kernel``), the operation
that it carries follows in brackets: ``vectorized_elementwise_kernel [CUDAFunctor_add]``.
"""

import re
from collections.abc import Iterator

#: Longest short name; room for the generated names of cuDNN and cuBLAS.
MAX_SHORT = 160
#: Only so much of a name is read: longer ones repeat themselves.
_MAX_READ = 4096

#: Functions that only carry an operation given as a template argument.
_CARRIERS = re.compile(
    r"""(\w*elementwise_kernel\w*|\w*elementwise_\w*grid_stride\w*|reduce_kernel|multi_tensor_apply_kernel\w*
    |EigenMetaKernel\w*|ReductionInitKernel|FullReductionKernel\w*|Device(Reduce|Scan|Select|Segmented)\w*Kernel
    |Kernel2?|device_kernel|kernel|_kernel_agent|run_kernel|for_each_kernel|parallel_for\w*
    |static_kernel|index_kernel|GPUKernel|ElementwiseKernel|tensor_kernel_scan\w*)$""",
    re.VERBOSE,
)
#: Names in template arguments that say nothing of the operation.
_BORING = frozenset(
    """
    const volatile unsigned signed int long short char bool float double half void auto typename
    size_t int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t bfloat16 __half
    __half2 __nv_bfloat16 Half BFloat16 Scalar true false nullptr lambda instance operator
    array Array TrivialOffsetCalculator OffsetCalculator LoadWithoutCast StoreWithoutCast
    LoadWithCast StoreWithCast TensorIterator TensorIteratorBase TensorListMetadata
    gpu_kernel_impl gpu_kernel_impl_nocast gpu_kernel_with_scalars gpu_kernel
    opmath_gpu_kernel_with_scalars opmath_symmetric_gpu_kernel_with_scalars ReduceOp
    func_wrapper_t AUnaryFunctor BUnaryFunctor BinaryFunctor UnaryFunctor binary_internal
    TensorEvaluator TensorAssignOp TensorMap Tensor MakePointer GpuDevice IndexList IndexPair
    type2index TensorCwiseBinaryOp TensorCwiseUnaryOp TensorCwiseNullaryOp TensorReductionOp
    TensorGeneratorOp TensorForcedEvalOp TensorEvalToOp scalar_right scalar_left
    enable_sm80_or_later enable_sm90_or_later enable_sm100_or_later cublasGemvParamsEx
    cublasGemvTensorStridedBatched cublasGemvTensorBatched conditional
    identity_decomposer_t policy_hub Policy600 Policy1000 DeviceReducePolicy OpaqueType
    T0 T1 T2 T3 T4 T5 T6 T7 T8 T9 N
    """.split()  # noqa: SIM905  (a list of words reads better so)
)
_ANONYMOUS = re.compile(
    r"\(anonymous namespace\)|<unnamed>|\{anonymous\}|`anonymous namespace'|\(anonymous class\)"
)
_ARGUMENTS = re.compile(r"<[^<>]*>")
_SPACE = re.compile(r"[\s\x00-\x1f\x7f]+")
_OPERATOR = re.compile(r"\boperator\s*(\(\)|<<=?|>>=?|<=?|>=?|->)")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
# In mangled names: a literal, a reference to an earlier name, or the length of an identifier.
_MANGLED_PART = re.compile(r"L[a-z]n?\d+E|[ST]\d*_|(\d{1,4})(?=[A-Za-z_])")
_BORING_END = re.compile(r"Metadata$")
_PLAIN = re.compile(r"[^<(]*$|\[?(CUDA )?mem(cpy|set)\b", re.IGNORECASE)
_DEDUCED = re.compile(r"^decltype\s*\(auto\)\s*")
_GENERATED = re.compile(r"_GLOBAL__N|_INTERNAL_|tmpxft|cu_compute|_cpp1_ii_")


def short_name(full: str) -> str:
    """The kernel's name without return type, namespaces, template arguments and parameters.

    Never fails and never gives an empty text for a name that is not empty; at most
    ``MAX_SHORT`` letters, what is cut out of the middle shown as ``…``.
    """
    text = _SPACE.sub(" ", full[:_MAX_READ]).strip()
    if not text:
        return "?" if full else ""
    if text.startswith("_Z"):
        function, arguments = _split_mangled(text)
    elif _PLAIN.match(text):
        function, arguments = text, ""
    else:
        function, arguments = _split(text)
    operation = _operation(arguments) if arguments and _CARRIERS.match(_last(function)) else None
    if operation:
        return _bounded(f"{_last(function)} [{operation}]")
    return _bounded(function or text)


def _bounded(text: str) -> str:
    if len(text) <= MAX_SHORT:
        return text
    tail = MAX_SHORT // 3
    return f"{text[: MAX_SHORT - tail - 1]}…{text[-tail:]}"


def _split(text: str) -> tuple[str, str]:
    """The function's own name and its template arguments, from a demangled name."""
    text = _OPERATOR.sub("operator", _ANONYMOUS.sub("", _DEDUCED.sub("", text)))
    depth = 0
    start = 0  # of the name, without what turned out to be the return type
    opened = 0  # where the template arguments begin that follow the name
    index = 0
    for index, letter in enumerate(text):
        if letter in "<[{":
            if depth == 0:
                opened = index + 1
            depth += 1
        elif letter in ">]}":
            depth = max(0, depth - 1)
            if depth == 0 and opened and not _goes_on(text, index + 1):
                return _own(text[start : opened - 1]), text[opened:index]
        elif depth:
            continue
        elif letter == "(" and index > start:
            break
        elif letter == " ":
            start = index + 1
    else:
        index = len(text)
    if depth and opened:  # brackets that never close: what was found so far
        return _own(text[start : opened - 1]), text[opened:]
    return _own(text[start:index]), ""


def _goes_on(text: str, index: int) -> bool:
    """Whether more of the name follows, so that the brackets belong to a class or return type."""
    following = text[index:].lstrip(" &*")
    return following.startswith("::") or (
        text[index : index + 1] in (" ", "&", "*") and following[:1].isidentifier()
    )


def _own(text: str) -> str:
    """The last component of a qualified name; with its namespace if it is just ``kernel``."""
    parts = [part for part in _ARGUMENTS.sub("", text).strip(" &*").split("::") if part]
    if not parts:
        return ""
    keep = 2 if parts[-1].lower() in ("kernel", "operator") else 1
    return "::".join(parts[-keep:])


def _last(function: str) -> str:
    return function.rsplit("::", maxsplit=1)[-1]


def _split_mangled(text: str) -> tuple[str, str]:
    """The same from an Itanium mangled name: identifiers stand behind their length."""
    names: list[str] = []
    end = 2
    for begin, word, end_of_word in _mangled_words(text, 2):
        between = text[end:begin]
        if names and ("I" in between or "E" in between):  # arguments begin, or the name ends
            return names[-1], " ".join(word for _, word, _ in _mangled_words(text, end))
        if not _GENERATED.search(word):
            names.append(word)
        end = end_of_word
    return (names[-1] if names else ""), ""


def _mangled_words(text: str, index: int) -> Iterator[tuple[int, str, int]]:
    """Identifiers with where their length and they themselves stand."""
    while found := _MANGLED_PART.search(text, index):
        index = found.end()
        if found.group(1):
            index += int(found.group(1))
            yield found.start(), text[found.end() : index], index


def _operation(arguments: str) -> str | None:
    """The first name in template arguments that tells the operation."""
    for found in _IDENTIFIER.finditer(arguments):
        word = found.group()
        namespace = arguments.startswith("::", found.end())
        if not namespace and word not in _BORING and not _BORING_END.search(word):
            return word
    return None
