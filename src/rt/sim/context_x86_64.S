/*
 * context_x86_64.S - the switch between two stacks: callee-saved registers, mxcsr, x87 control word.
 *
 * Everything a paused context consists of is pushed on its own stack, so the context is its stack
 * pointer, and the bytes from there up are the whole of it (the state cache relies on that).
 */
	.text

/* void sim_context_switch(void **save, void *load) */
	.globl	sim_context_switch
	.hidden	sim_context_switch
	.type	sim_context_switch, @function
	.p2align 4
sim_context_switch:
	.cfi_startproc
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	subq	$8, %rsp
	stmxcsr	(%rsp)
	fnstcw	4(%rsp)
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
	fldcw	4(%rsp)
	ldmxcsr	(%rsp)
	addq	$8, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	ret
	.cfi_endproc
	.size	sim_context_switch, . - sim_context_switch

/* Where a new context begins: rbx holds its entry. Debuggers end their backtrace here. */
	.globl	sim_context_begin
	.hidden	sim_context_begin
	.type	sim_context_begin, @function
	.p2align 4
sim_context_begin:
	.cfi_startproc
	.cfi_undefined rip
	xorl	%ebp, %ebp
	call	*%rbx
	ud2
	.cfi_endproc
	.size	sim_context_begin, . - sim_context_begin

	.section .note.GNU-stack,"",@progbits
