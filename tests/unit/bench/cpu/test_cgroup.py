import pytest

from mansard.bench.cpu.cgroup import cpu_quota, memory_left


def test_version_2_gives_quota_over_period(system):
    system.write("proc/self/cgroup", "0::/a/b\n")
    system.write("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n")
    assert cpu_quota(system.root) == 1.5


def test_the_tightest_parent_counts(system):
    system.write("proc/self/cgroup", "0::/a/b\n")
    system.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n")
    system.write("sys/fs/cgroup/a/cpu.max", "200000 100000\n")
    system.write("sys/fs/cgroup/cpu.max", "400000 100000\n")
    assert cpu_quota(system.root) == 2.0


def test_version_1_gives_quota_over_period(system):
    system.write("proc/self/cgroup", "4:cpu,cpuacct:/docker/xyz\n3:memory:/docker/xyz\n")
    system.write("sys/fs/cgroup/cpu,cpuacct/docker/xyz/cpu.cfs_quota_us", "50000\n")
    system.write("sys/fs/cgroup/cpu,cpuacct/docker/xyz/cpu.cfs_period_us", "100000\n")
    assert cpu_quota(system.root) == 0.5


def test_a_container_that_sees_only_its_own_root_finds_its_limit_there(system):
    system.write("proc/self/cgroup", "0::/../../outside/of/the/container\n")
    system.write("sys/fs/cgroup/cpu.max", "300000 100000\n")
    assert cpu_quota(system.root) == 3.0


@pytest.mark.parametrize("text", ["max 100000", "-1 100000", "100000", "100000 0", "", "a b"])
def test_no_limit_or_nonsense_is_no_limit(system, text):
    system.write("proc/self/cgroup", "0::/\n")
    system.write("sys/fs/cgroup/cpu.max", text)
    assert cpu_quota(system.root) is None


def test_without_control_groups_there_is_no_limit(system):
    assert cpu_quota(system.root) is None
    assert memory_left(system.root) is None


def test_memory_left_is_limit_less_use_in_both_versions(system):
    system.write("proc/self/cgroup", "0::/v2\n5:memory:/v1\n")
    system.write("sys/fs/cgroup/v2/memory.max", "1000\n")
    system.write("sys/fs/cgroup/v2/memory.current", "100\n")
    system.write("sys/fs/cgroup/memory/v1/memory.limit_in_bytes", "700\n")
    system.write("sys/fs/cgroup/memory/v1/memory.usage_in_bytes", "900\n")
    assert memory_left(system.root) == 0


def test_the_huge_number_of_version_1_is_no_limit(system):
    system.write("proc/self/cgroup", "5:memory:/\n")
    system.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    system.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "900\n")
    assert memory_left(system.root) is None
