import pytest

from mansard.bench.cpu.processor import Cache, Processor, parse_cpu_list, read_processor
from mansard.errors import DeviceError

CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model name\t: Intel(R) Xeon(R) Test 9999
flags\t\t: fpu avx2 fma hypervisor

processor\t: 1
model name\t: another, not the first
"""
MEMINFO = "MemTotal:       16000000 kB\nMemAvailable:    8000000 kB\n"


def read(system, cpus=(0, 1, 2, 3), machine="x86_64"):
    return read_processor(system.root, machine=machine, allowed=frozenset(cpus))


def test_the_name_and_flags_are_those_of_the_first_processor(system):
    system.write("proc/cpuinfo", CPUINFO)
    processor = read(system)
    assert processor.name == "Intel(R) Xeon(R) Test 9999"
    assert processor.flags == {"fpu", "avx2", "fma", "hypervisor"}
    assert processor.hypervisor


def test_aarch64_features_are_its_flags(system):
    system.write("proc/cpuinfo", "processor : 0\nFeatures : fp asimd bf16\nCPU part : 0xd4f\n")
    processor = read(system, machine="aarch64")
    assert processor.architecture == "aarch64"
    assert processor.flags == {"fp", "asimd", "bf16"}
    assert processor.name == ""


def test_one_thread_of_each_core_is_taken(system):
    for cpu in range(4):
        pair = "0,2" if cpu % 2 == 0 else "1,3"
        system.write(f"sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list", pair)
    assert read(system).cores == (0, 1)


def test_a_core_of_which_only_the_second_thread_is_allowed_counts(system):
    system.write("sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2")
    assert read(system, cpus=(2,)).cores == (2,)


def test_data_and_unified_caches_are_read_with_their_sharers_and_code_caches_are_not(system):
    for cpu in (0, 1):
        system.cache(cpu, 0, 1, "Data", "48K", str(cpu))
        system.cache(cpu, 1, 1, "Instruction", "32K", str(cpu))
        system.cache(cpu, 2, 2, "Unified", "2048K", str(cpu))
        system.cache(cpu, 3, 3, "Unified", "1G", "0-1")
    assert read(system, cpus=(0, 1)).caches == (
        Cache(1, 49152, frozenset({0})),
        Cache(1, 49152, frozenset({1})),
        Cache(2, 2097152, frozenset({0})),
        Cache(2, 2097152, frozenset({1})),
        Cache(3, 1073741824, frozenset({0, 1})),
    )


@pytest.mark.parametrize("size", ["", "0K", "K", "-4K", "4X", "many"])
def test_a_cache_without_a_readable_size_is_left_out(system, size):
    system.cache(0, 0, 1, "Data", size, "0")
    assert read(system).caches == ()


def test_a_system_that_tells_nothing_still_gives_the_allowed_processors(system):
    processor = read(system, cpus=(3, 5))
    assert processor.cpus == (3, 5)
    assert processor.cores == (3, 5)
    assert processor.memory_bytes is None
    assert processor.memory_free_bytes is None
    assert processor.clock_max_hz is None
    assert processor.governor is None


def test_memory_and_frequency_are_in_base_units(system):
    system.write("proc/meminfo", MEMINFO)
    system.write("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3700000\n")
    system.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n")
    processor = read(system)
    assert processor.memory_bytes == 16_384_000_000
    assert processor.memory_free_bytes == 8_192_000_000
    assert processor.clock_max_hz == 3.7e9
    assert processor.governor == "performance"


def test_a_control_group_can_leave_less_memory_than_is_free(system):
    system.write("proc/meminfo", MEMINFO)
    system.write("proc/self/cgroup", "0::/job\n")
    system.write("sys/fs/cgroup/job/memory.max", "1000000\n")
    system.write("sys/fs/cgroup/job/memory.current", "400000\n")
    assert read(system).memory_free_bytes == 600_000


def test_another_architecture_is_refused_with_the_ones_that_work(system):
    with pytest.raises(DeviceError, match=r"'riscv64': x86_64 and aarch64 only"):
        read(system, machine="riscv64")


@pytest.mark.parametrize(("quota", "threads"), [(None, 4), (8.0, 4), (2.5, 2), (1.0, 1), (0.2, 1)])
def test_threads_allowed_is_a_core_each_within_the_quota(quota, threads):
    processor = Processor("", "x86_64", frozenset(), (0, 1, 2, 3), (0, 1, 2, 3), (), quota)
    assert processor.threads_allowed == threads


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0", {0}),
        ("0-3", {0, 1, 2, 3}),
        ("0-1,8,10-11\n", {0, 1, 8, 10, 11}),
        ("", set()),
        ("x,1-,2-y,-3", {1}),
    ],
)
def test_cpu_lists_are_read_as_the_kernel_writes_them(text, cpus):
    assert parse_cpu_list(text) == cpus


def test_an_absurd_cpu_list_is_cut_rather_than_filling_memory():
    assert len(parse_cpu_list("0-999999999999")) == 1_000_001
