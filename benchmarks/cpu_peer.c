/* The kernels of mansard.bench.cpu once more, as a C compiler makes them: the peer of
 * benchmarks/cpu_ceilings.py and nothing else. Build (the benchmark does it):
 *
 *   gcc -O3 -march=native -mprefer-vector-width=512 -ffp-contract=fast \
 *       -fno-tree-loop-distribute-patterns -DWIDTH=64 -shared -fPIC cpu_peer.c -o cpu_peer.so
 *
 * Each kernel has an entry `measure_NAME` with the same arguments and times as the generated
 * `measure` (mansard.bench.cpu.kernels), so that the same threads, memory and clocks serve both.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif

#ifndef WIDTH
#define WIDTH 16
#endif
#define UNROLL 4       /* steps of a chain in one iteration of a compute loop */
#define ROWS 16        /* vectors of a stream in one iteration of a memory loop */
#define CLOSED (-(INT64_C(1) << 62)) /* a gate that threads gave up */
#define KEPT 8         /* vectors that a read gives back */
#if WIDTH == 32
#define CHAINS 10
#define OPERANDS 2
#else
#define CHAINS 20
#define OPERANDS 4
#endif

typedef double vdouble __attribute__((vector_size(WIDTH), may_alias));

/* Accumulators stay in registers: the loops over chains and steps have constant bounds. */
#define COMPUTE(NAME, TYPE, STEP)                                                              \
    static __attribute__((noinline)) void kernel_##NAME(int64_t *args)                         \
    {                                                                                          \
        TYPE *memory = (TYPE *)args[0];                                                        \
        int64_t iterations = args[1];                                                          \
        TYPE acc[CHAINS], a[OPERANDS], b[OPERANDS];                                            \
        _Pragma("GCC unroll 20") for (int k = 0; k < CHAINS; k++) acc[k] = memory[k];          \
        _Pragma("GCC unroll 4") for (int k = 0; k < OPERANDS; k++)                             \
        {                                                                                      \
            a[k] = memory[CHAINS + k];                                                         \
            b[k] = memory[CHAINS + OPERANDS + k];                                              \
        }                                                                                      \
        do {                                                                                   \
            _Pragma("GCC unroll 4") for (int step = 0; step < UNROLL; step++) {                \
                _Pragma("GCC unroll 20") for (int k = 0; k < CHAINS; k++)                      \
                    acc[k] = STEP(acc[k], a[k % OPERANDS], b[(k / OPERANDS + step) % OPERANDS]); \
            }                                                                                  \
        } while (--iterations);                                                                \
        _Pragma("GCC unroll 20") for (int k = 0; k < CHAINS; k++) memory[k] = acc[k];          \
    }                                                                                          \
    ENTRY(NAME)

#define STREAM(NAME, BODY, END)                                                                \
    static __attribute__((noinline)) void kernel_##NAME(int64_t *args)                         \
    {                                                                                          \
        vdouble *out = (vdouble *)args[0];                                                     \
        const vdouble *first = (const vdouble *)args[1], *second = (const vdouble *)args[2];   \
        int64_t rows = args[3] * ROWS, passes = args[4];                                       \
        double scalar = *(double *)&args[5];                                                   \
        vdouble scalars = scalar - (vdouble){0};                                               \
        (void)first, (void)second, (void)scalars;                                              \
        do {                                                                                   \
            for (int64_t row = 0; row < rows; row += ROWS) {                                   \
                _Pragma("GCC unroll 16") for (int place = 0; place < ROWS; place++) {          \
                    int64_t i = row + place;                                                   \
                    BODY;                                                                      \
                }                                                                              \
            }                                                                                  \
        } while (--passes);                                                                    \
        END;                                                                                   \
    }                                                                                          \
    ENTRY(NAME)

#define ENTRY(NAME)                                                                            \
    int measure_##NAME(int64_t *gate, int64_t threads, int64_t patience, int64_t links,        \
                       struct timespec *times, int64_t *args)                                  \
    {                                                                                          \
        clock_gettime(CLOCK_MONOTONIC, &times[0]);                                             \
        chain(links);                                                                          \
        clock_gettime(CLOCK_MONOTONIC, &times[1]);                                             \
        __atomic_fetch_add(gate, 1, __ATOMIC_SEQ_CST);                                         \
        for (int64_t arrived; (arrived = __atomic_load_n(gate, __ATOMIC_ACQUIRE)) < threads;)  \
        {                                                                                      \
            PAUSE;                                                                             \
            if (arrived < 0) return 0;                                                         \
            if (--patience <= 0)                                                               \
                __atomic_compare_exchange_n(gate, &arrived, CLOSED, 0, __ATOMIC_SEQ_CST,       \
                                            __ATOMIC_SEQ_CST);                                 \
        }                                                                                      \
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &times[2]);                                     \
        clock_gettime(CLOCK_MONOTONIC, &times[3]);                                             \
        kernel_##NAME(args);                                                                   \
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                                               \
        clock_gettime(CLOCK_MONOTONIC, &times[4]);                                             \
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &times[5]);                                     \
        clock_gettime(CLOCK_MONOTONIC, &times[6]);                                             \
        chain(links);                                                                          \
        clock_gettime(CLOCK_MONOTONIC, &times[7]);                                             \
        return 1;                                                                              \
    }

#if defined(__x86_64__)
#define PAUSE __builtin_ia32_pause()
#define ADD "add %1, %0\n\t"
#else
#define PAUSE __asm__ volatile("yield")
#define ADD "add %0, %0, %1\n\t"
#endif

/* 64 dependent additions a link: the clock. */
static __attribute__((noinline)) void chain(int64_t links)
{
    int64_t value = 1, more = links;
    do {
        __asm__ volatile(".rept 64\n\t" ADD ".endr\n\t" : "+r"(value) : "r"(more));
    } while (--links);
}

/* Intrinsics: written as acc + a * b, the products would be taken out of the loop, because a and b
 * do not change in it, and only additions would be left. */
#if WIDTH == 64
#define FUSED_FP64(acc, a, b) _mm512_fmadd_pd(a, b, acc)
#define FUSED_FP32(acc, a, b) _mm512_fmadd_ps(a, b, acc)
COMPUTE(fma_fp64, __m512d, FUSED_FP64)
COMPUTE(fma_fp32, __m512, FUSED_FP32)
#elif WIDTH == 32
#define FUSED_FP64(acc, a, b) _mm256_fmadd_pd(a, b, acc)
#define FUSED_FP32(acc, a, b) _mm256_fmadd_ps(a, b, acc)
COMPUTE(fma_fp64, __m256d, FUSED_FP64)
COMPUTE(fma_fp32, __m256, FUSED_FP32)
#else
COMPUTE(fma_fp64, float64x2_t, vfmaq_f64)
COMPUTE(fma_fp32, float32x4_t, vfmaq_f32)
#endif

#if defined(__AVX512BF16__) && WIDTH == 64
#define DOT_BF16(acc, a, b) _mm512_dpbf16_ps(acc, (__m512bh)(a), (__m512bh)(b))
COMPUTE(dot_bf16, __m512, DOT_BF16)
#endif
#if defined(__AVX512VNNI__) && WIDTH == 64
#define DOT_INT8(acc, a, b) _mm512_dpbusd_epi32(acc, a, b)
COMPUTE(dot_int8, __m512i, DOT_INT8)
#endif

#define NOTHING (void)0
#define KEEP for (int i = 0; i < KEPT; i++) out[i] = first[rows - KEPT + i]
STREAM(read, (void)*(const volatile vdouble *)&first[i], KEEP)
STREAM(write, out[i] = scalars, NOTHING)
STREAM(copy, out[i] = first[i], NOTHING)
STREAM(triad, out[i] = first[i] + scalars * second[i], NOTHING)

#if defined(__AVX512F__) && WIDTH == 64
#define AROUND(value) _mm512_stream_pd((double *)&out[i], (__m512d)(value))
#elif defined(__AVX__) && WIDTH == 32
#define AROUND(value) _mm256_stream_pd((double *)&out[i], (__m256d)(value))
#endif
#ifdef AROUND
STREAM(write_nt, AROUND(scalars), NOTHING)
STREAM(copy_nt, AROUND(first[i]), NOTHING)
STREAM(triad_nt, AROUND(first[i] + scalars * second[i]), NOTHING)
#endif
