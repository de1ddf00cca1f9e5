// SM clock and launches: stamps around a sample, a gate that holds a stream, a kernel of nothing.
//
// Work: none. Bytes: 16 a stamped SM. Kept by: volatile reads of clocks; the gate reads host memory.

typedef unsigned long long u64;

// Slot s receives SM s's cycle counter and the nanosecond timer, read together. The caller launches
// blocks of 1 024 threads, enough to fill every SM.
extern "C" __global__ void __launch_bounds__(1024) clock_stamp(ulonglong2* slots, unsigned count) {
    if (threadIdx.x != 0) return;
    unsigned id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    u64 time;
    const u64 cycles = (u64)clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    if (id < count) slots[id] = make_ulonglong2(cycles, time);
}

// Holds the stream until the host sets the flag, or for a second at most.
extern "C" __global__ void gate(const volatile unsigned* open) {
    u64 start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (*open == 0 && now - start < 1000000000ull);
}

extern "C" __global__ void nothing() {}
