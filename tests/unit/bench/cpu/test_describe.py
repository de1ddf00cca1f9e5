import dataclasses

from mansard.bench.cpu.describe import caveats_of, facts_of, machine_name, provenance_of
from mansard.bench.cpu.limits import Microarchitecture

KNOWN = Microarchitecture("icelake-client", fma_bits=512, source="a document")
UNKNOWN = Microarchitecture("neoverse-x9", reason="Not known.")


def test_the_name_of_a_machine_can_be_the_stem_of_a_file(server):
    assert machine_name(server, KNOWN) == "cpu-test-server"
    hostile = dataclasses.replace(server, name="../../etc/passwd\n\x00 & Söhne")
    assert machine_name(hostile, KNOWN) == "cpu-etc-passwd-s-hne"


def test_a_system_without_a_model_name_is_named_after_its_core(server):
    nameless = dataclasses.replace(server, name="")
    assert machine_name(nameless, UNKNOWN) == "cpu-neoverse-x9"
    assert facts_of(nameless, UNKNOWN).name == "neoverse-x9"


def test_facts_have_cores_last_cache_and_memory(server):
    facts = facts_of(server, KNOWN)
    assert facts.sm_count == 4
    assert facts.l2_bytes == 64 * 1024**2
    assert facts.dram_bytes == 32 * 1024**3
    assert facts.chip == "icelake-client"
    assert facts_of(server, UNKNOWN).chip is None


def test_provenance_says_which_cores_and_how_they_were_held(server):
    found = provenance_of(server, KNOWN, (0, 2))
    assert found["cpus"] == [0, 2]
    assert found["cpus_allowed"] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert "sched_setaffinity" in found["pinning"]
    assert found["instruction_sets"] == ["avx", "avx2", "avx512_vnni", "avx512f", "fma"]


def caveats(server, core=KNOWN, cpus=(0, 1, 2, 3), load=0.0):
    return caveats_of(server, core, cpus, load=load, ceilings=[])


def test_a_quiet_own_machine_has_no_caveats(server):
    assert caveats(server) == []


def test_what_a_reader_must_know_is_said(server):
    shared = dataclasses.replace(
        server, hypervisor=True, quota_cores=1.5, flags=server.flags | {"sve"}
    )
    said = " ".join(caveats(shared, UNKNOWN, (0,), load=3.0))
    assert "virtual machine" in said
    assert "1 of 4 cores" in said
    assert "1.5 cores' worth of time" in said
    assert "load average 3.0 on 1 cores" in said
    assert "Not known." in said
    assert "SVE" in said
