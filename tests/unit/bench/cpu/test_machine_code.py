from mansard.bench.cpu.machine_code import innermost_loop

NESTED = """
	.globl	kernel
kernel:                                 # @kernel
	movq	(%rdi), %rax
.LBB0_1:                                # =>This Loop
	xorl	%r9d, %r9d
	.p2align	4
.LBB0_2:                                #   Parent Loop
	vmovups	-64(%rax,%r9), %zmm0    # load
	vmovups	(%rax,%r9), %zmm1
	vfmadd213pd	(%rcx,%r9), %zmm2, %zmm1
	vmovupd	%zmm1, (%rdx,%r9)
	addq	$128, %r9
	cmpq	%rsi, %r9
	jb	.LBB0_2
	decq	%r8
	jne	.LBB0_1
	retq
.Lfunc_end0:
	.size	kernel, .Lfunc_end0-kernel
other:
	vmovups	(%rax), %zmm0
	jmp	other
"""


def test_the_innermost_loop_is_found_without_labels_comments_and_directives():
    loop = innermost_loop(NESTED, "x86_64")
    assert len(loop.instructions) == 7
    assert loop.instructions[0] == "vmovups -64(%rax,%r9), %zmm0"
    assert loop.instructions[-1] == "jb .LBB0_2"


def test_instructions_are_counted_by_whole_names():
    loop = innermost_loop(NESTED, "x86_64")
    assert loop.count(r"vfmadd\d+pd") == 1
    assert loop.count(r"vfmadd\d+p") == 0
    assert loop.count("vmovups") == 2


def test_vector_bytes_tell_reads_from_writes_and_count_folded_loads():
    assert innermost_loop(NESTED, "x86_64").vector_bytes(64) == (3 * 64, 64)


def test_narrower_vectors_than_asked_for_do_not_count():
    assert innermost_loop(NESTED, "x86_64").vector_bytes(32) == (0, 0)


def test_memory_and_stack_operands_are_told_apart():
    spilled = NESTED.replace("vmovups	(%rax,%r9), %zmm1", "vmovups	64(%rsp), %zmm1")
    loop = innermost_loop(spilled, "x86_64")
    assert loop.memory_operands == 4
    assert loop.stack_operands == 1


def test_inline_assembly_inside_a_loop_counts():
    text = """kernel:
.LBB0_1:
	#APP
	{vex}	vpdpbusd	%ymm1, %ymm2, %ymm0
	#NO_APP
	decq	%rax
	jne	.LBB0_1
	.size	kernel, 1
"""
    loop = innermost_loop(text, "x86_64")
    assert loop.count("vpdpbusd") == 1
    assert len(loop.instructions) == 3


def test_aarch64_pairs_count_twice_and_halves_half():
    text = """kernel:                                 // @kernel
.LBB0_1:                                // =>
	ldp	q0, q1, [x1, #-32]
	ldr	q2, [x1], #16
	fmla	v0.2d, v1.2d, v2.d[0]
	stnp	d0, d1, [x0]
	str	q1, [x0, #16]
	str	x9, [sp, #8]
	subs	x3, x3, #1
	b.ne	.LBB0_1
	ret
	.size	kernel, 1
"""
    loop = innermost_loop(text, "aarch64")
    assert loop.vector_bytes(16) == (48, 32)
    assert loop.memory_operands == 5
    assert loop.stack_operands == 1
    assert loop.count("fml[as]") == 1


def test_a_compare_and_branch_of_aarch64_closes_a_loop():
    text = "kernel:\n.LBB0_1:\n\tadd x0, x0, #1\n\tcbnz x1, .LBB0_1\n\t.size kernel, 1\n"
    assert len(innermost_loop(text, "aarch64").instructions) == 2


def test_a_function_without_a_loop_gives_no_instructions():
    loop = innermost_loop("kernel:\n\tretq\n\t.size kernel, 1\n", "x86_64")
    assert loop.instructions == ()


def test_a_missing_function_gives_no_instructions():
    assert innermost_loop(NESTED, "x86_64", "absent").instructions == ()


def test_forward_jumps_are_no_loops():
    text = "kernel:\n\tjne .LBB0_1\n\taddq %rax, %rax\n.LBB0_1:\n\tretq\n\t.size kernel, 1\n"
    assert innermost_loop(text, "x86_64").instructions == ()
