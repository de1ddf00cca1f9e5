"""What is read out of ncu's log while it grows."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from mansard.collect.ncu.log import Log

#: As Nsight Compute 2025 writes it.
WHOLE = """==WARNING== Note: Running with uncontrolled GPU caches. Profiling results may be inconsistent.
==PROF== Connected to process 367502 (/usr/bin/python3.12)
==PROF== Profiling "unrolled_elementwise_kernel" - 0: 0%....50%....100% - 8 passes
==PROF== Profiling "ampere_fp16_s1688gemm_fp16_12..." - 1: 0%....50%....100% - 8 passes
==PROF== Disconnected from process 367502
==PROF== Report: /tmp/run.ncu-rep
"""


def read(*pieces):
    log = Log()
    for piece in pieces:
        log.feed(piece)
    log.close()
    return log


def test_whole_lines_give_launches_and_passes():
    log = read(WHOLE)
    assert (log.step.kernels, log.step.passes, log.processes) == (2, 8, 1)
    assert log.exit_code is None
    assert [message[:11] for message in log.messages] == ["==WARNING=="]


def test_a_line_that_is_still_growing_tells_the_pass():
    log = Log()
    log.feed('==PROF== Profiling "a" - 0: 0%....50%....100% - 8 passes\n')
    log.feed('==PROF== Profiling "b" - 1: 0%....50')
    assert (log.step.name, log.step.kernels, log.step.share) == ("b", 1, 0.0)
    log.feed("%")
    assert (log.step.share, log.step.current_pass) == (0.5, 5)


def test_the_pass_is_unknown_before_the_first_launch_is_done():
    log = Log()
    log.feed('==PROF== Profiling "a" - 0: 0%....50%')
    assert log.step.current_pass is None


def test_lines_of_older_and_of_single_pass_runs_count_too():
    log = read(
        '==PROF== Profiling "add_kernel": 0%....50%....100% - 18 passes\n',
        '==PROF== Profiling "k" - 1 (2/5): 0%....50%....100% - 1 pass\n',
        '==PROF== Profiling "gemm, \\"fp64\\"" - 2: 0%....50%....100%\n',
    )
    assert (log.step.kernels, log.step.passes) == (3, 1)


def test_program_output_in_the_same_line_does_no_harm():
    log = read('==PROF== Profiling "k" - 1: 0%....50%....100%Graph Tensors:\nTensor 80%\n')
    assert log.step.kernels == 1


def test_launches_of_a_program_that_runs_once_a_pass_count_once():
    runs = (
        "==PROF== Connected to process 7572 (/opt/kinds)\n"
        f'==PROF== Profiling "range" - 0: Application replay pass {number}\n'
        f'==PROF== Profiling "range" - 1: Application replay pass {number}\n'
        for number in (1, 2, 3)
    )
    log = read(*runs)
    assert (log.step.kernels, log.step.passes) == (2, 3)


def test_a_launch_that_a_signal_cut_off_is_not_counted():
    log = read(
        '==PROF== Profiling "k" - 20: 0%..==PROF== Received signal\n',
        "==PROF== Trying to shutdown target application\n - 3 passes\n",
        '==ERROR== Failed to profile "k" in process 25093\n',
        "==ERROR== The application returned an error code (15).\n",
    )
    assert log.step.kernels == 0
    assert (log.shut_down, log.exit_code) == (True, 15)


def test_no_kernels_is_noticed():
    assert read("==WARNING== No kernels were profiled.\n").no_kernels


def test_messages_are_bounded():
    log = read('==ERROR== Failed to profile "k" in process 1\n' * 5000)
    assert len(log.messages) == 1000


@settings(max_examples=50)
@given(st.lists(st.integers(0, len(WHOLE)), max_size=8))
def test_the_pieces_in_which_it_comes_make_no_difference(cuts):
    edges = [0, *sorted(cuts), len(WHOLE)]
    log = read(*(WHOLE[a:b] for a, b in itertools.pairwise(edges)))
    assert (log.step, log.messages, log.processes) == (
        read(WHOLE).step,
        read(WHOLE).messages,
        1,
    )


@settings(max_examples=50)
@given(st.text())
def test_any_text_can_be_read(text):
    read(text, f"==PROF== {text}", f'==PROF== Profiling "{text}', f"==ERROR== {text}\n")
