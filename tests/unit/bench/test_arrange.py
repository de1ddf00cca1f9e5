"""Inputs and expected outputs of compute kernels, against a plain simulation of what they do."""

import numpy as np
import pytest

from mansard.bench import arrange, operands
from mansard.bench.kernels import kernels
from mansard.bench.messages import Task
from mansard.bench.variants import variants

RNG = lambda: np.random.default_rng(1)  # noqa: E731


def task_of(kernel):
    return Task(
        name="t",
        recipe="compute",
        kind="compute",
        path=kernel.path,
        instruction=kernel.instruction,
        operand=kernel.operand,
        accumulator=kernel.accumulator,
        shape=kernel.shape,
    )


def first(path, instruction, capability=(9, 0)):
    kernel = next(
        k
        for k in kernels()
        if (k.path, k.instruction) == (path, instruction) and k.runs_on(capability)
    )
    return task_of(kernel), variants(kernel)[0]


@pytest.mark.parametrize("kernel", kernels(), ids=lambda k: f"{k.path} {k.instruction} {k.shape}")
def test_every_kernel_has_data_for_both_arms_and_a_case_with_a_known_result(kernel):
    task, variant = task_of(kernel), variants(kernel)[0]
    random = arrange.inputs(task, variant, "random", RNG())
    zeros = arrange.inputs(task, variant, "low-toggle", RNG())
    assert [a.shape for a in random.arrays] == [a.shape for a in zeros.arrays]
    assert not any(array.any() for array in zeros.arrays)
    assert random.arrays[0].any()
    case = arrange.check_case(task, variant, 2, RNG())
    assert len(case.expected) == len(case.threads)
    assert case.expected.any()  # a kernel that stores nothing does not pass
    assert len(np.unique(case.expected)) > 1
    dtype, count = arrange.output_words(variant, 2)
    assert case.expected.dtype == dtype
    assert case.threads.max() < count


def test_random_mma_data_cancel_so_that_sums_stay_bounded():
    task, variant = first("tensor fp16", "mma.sync")
    records = arrange.inputs(task, variant, "random", RNG()).arrays[0]
    tiles = records.view(np.float16).reshape(len(records), -1, 2, 4)[:, :4]  # four A tiles
    assert (tiles[:, 2:] == -tiles[:, :2]).all()


def test_random_wgmma_data_cancel_over_the_stages():
    task, variant = first("tensor bf16", "wgmma")
    image = arrange.inputs(task, variant, "random", RNG()).arrays[0]
    b = image[: 4 * 32768].reshape(4, -1)
    a = image[4 * 32768 :].reshape(2, 4, -1)
    assert (b[:2] == b[2:]).all()
    for group in a:
        first_half = operands.decode("bf16", np.ascontiguousarray(group[:2]).reshape(-1))
        second_half = operands.decode("bf16", np.ascontiguousarray(group[2:]).reshape(-1))
        assert (second_half == -first_half).all()


def unfragment(registers, rows):
    """The matrix that the lanes of a warp hold, by the picture in the PTX ISA (16-bit types)."""
    pairs = registers.astype(np.uint32).view(np.uint16).reshape(32, -1, 2)
    columns = 2 * 4 * pairs.shape[1] // max(1, rows // 8)
    matrix = np.zeros((rows, columns), np.uint16)
    for lane in range(32):
        group, member = lane >> 2, lane & 3
        for index in range(pairs.shape[1]):
            row = group + (8 if rows == 16 and index & 1 else 0)
            block = index >> 1 if rows == 16 else index
            matrix[row, 8 * block + 2 * member : 8 * block + 2 * member + 2] = pairs[lane, index]
    return matrix.view(np.float16).astype(float)


def test_the_expected_hash_of_mma_is_that_of_a_simulated_warp():
    task, variant = first("tensor fp16", "mma.sync")
    case = arrange.check_case(task, variant, 1, RNG())
    record = case.inputs.arrays[0][:32]  # the first warp
    a = [unfragment(record[:, 4 * i : 4 * i + 4], 16) for i in range(4)]
    b = [unfragment(record[:, 16 + 2 * i : 18 + 2 * i], 8).T for i in range(2)]
    words = []
    for i in range(variant.number("ILP")):
        d = np.zeros((16, 8))
        for step in range(variant.number("STEPS")):
            d += a[step % 4] @ b[(step + i) % 2]
        # Lane 7 is group 1, member 3: it holds (1, 6), (1, 7), (9, 6), (9, 7).
        words += [d[1, 6], d[1, 7], d[9, 6], d[9, 7]]
    hashed = 0
    for word in np.array(words, np.float32).view(np.uint32).tolist():
        hashed = (hashed * 31 + word) % 2**32
    assert case.expected[7] == hashed


def test_the_expected_hash_of_wgmma_is_that_of_a_product_of_unswizzled_tiles():
    task, variant = first("tensor fp8", "wgmma")
    case = arrange.check_case(task, variant, 1, RNG())
    image = case.inputs.arrays[0]

    def tile(start, rows):
        flat = image[start : start + rows * 128].reshape(rows, 8, 16)
        straight = np.stack([flat[r][[c ^ (r % 8) for c in range(8)]] for r in range(rows)])
        return operands.decode("e4m3", np.ascontiguousarray(straight).reshape(-1)).reshape(
            rows, 128
        )

    total = np.zeros((64, 256))
    for stage in range(4):
        b = tile(stage * 32768, 256)
        a = tile(4 * 32768 + 4 * 8192 + stage * 8192, 64)  # the second warp group
        total += a @ b.T
    # Thread 128 + 32 w + 4 g + t with w = 1, g = 2, t = 3.
    words = [total[16 + 2 + 8 * (i // 2 % 2), 8 * (i // 4) + 6 + i % 2] for i in range(128)]
    hashed = 0
    for word in np.array(words, np.float32).view(np.uint32).tolist():
        hashed = (hashed * 31 + word) % 2**32
    assert case.expected[128 + 32 + 8 + 3] == hashed


def test_half_sums_of_the_check_stay_exact():
    task, variant = first("tensor fp16", "mma.sync fp16-acc")
    assert variant.number("STEPS") * task.shape[2] <= 2048  # FP16 counts to 2 048
