/* void set_bytes(void *at, long count): what kernels have in assembly, with lines and names but no types */
	.text
	.globl	set_bytes
	.type	set_bytes, @function
set_bytes:
	mov	%rsi, %rcx
	mov	$0, %al
	rep	stosb
	ret
	.size	set_bytes, . - set_bytes
	.section .note.GNU-stack,"",@progbits
