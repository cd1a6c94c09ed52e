//! The threads' own area, and what it takes to register it, for aarch64.

use std::arch::{asm, naked_asm};

/// The four bytes (`RSEQ_SIG`) that the kernel requires before each rseq critical section's abort handler.
pub(crate) const SIGNATURE: u32 = 0xd428_bc00;

/// A function that returns the offset of a thread-local symbol from the thread pointer, where it is
/// the same in every thread, and 0 where it is not.
///
/// By TLS descriptors. A program's own variables and those of libraries that are loaded with it lie at
/// one offset in all threads; a library that is loaded later (`dlopen`) gets room there while there is
/// some, and else memory that each thread has elsewhere. The linker turns the descriptor's call into
/// the offset itself where that is known, so x0 is the same before and after it; else the loader fills
/// the descriptor in: a function that returns the second word is for a constant offset, any other has
/// a pointer there, which is no offset.
macro_rules! thread_local_offset {
    ($(#[$doc:meta])* $name:ident = $symbol:expr; $definition:expr) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() -> isize {
            naked_asm!(
                $definition,
                "stp x29, x30, [sp, #-16]!",
                "mov x29, sp",
                concat!("adrp x0, :tlsdesc:", $symbol),
                concat!("ldr x1, [x0, :tlsdesc_lo12:", $symbol, "]"),
                concat!("add x0, x0, :tlsdesc_lo12:", $symbol),
                // such a call keeps all registers but x0
                "mov x2, x0",
                concat!(".tlsdesccall ", $symbol),
                "blr x1",
                "cmp x0, x2",
                "b.eq 2f",
                "ldr x2, [x2, #8]",
                "cmp x0, x2",
                "csel x0, x0, xzr, eq",
                "2: ldp x29, x30, [sp], #16",
                "ret"
            )
        }
    };
}

thread_local_offset! {
    /// Returns the offset of the area that this program, or library, has for each thread.
    ///
    /// It is the symbol `__rseq_abi`, weak and visible, as in tcmalloc and in librseq before it relied on
    /// glibc: whoever is linked with one of them has one area for both. CPU number −1 says that it is not
    /// registered. The 32 bytes in front are nobody's: tcmalloc keeps a pointer there that ends in the
    /// area's first word.
    own_area_offset = "__rseq_abi"; area_definition!()
}

thread_local_offset! {
    /// Returns the offset of the number of those who registered the thread's area, which tcmalloc keeps
    /// under this name.
    refcount_offset = "__rseq_refcount"; refcount_definition!()
}

/// Returns the calling thread's thread pointer (TLS base), to which rseq areas have a fixed offset.
pub(crate) fn thread_pointer() -> *mut u8 {
    let pointer;
    // SAFETY: reads a register.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem)) };
    pointer
}

/// Makes the system call `rseq`, which registers a thread's area; returns 0 or a negated error number, and leaves
/// `errno` alone.
///
/// # Safety
/// For a registration `area` is the calling thread's alone, 32 bytes, aligned to as many, and lives
/// until it is unregistered or the thread ends.
pub(crate) unsafe fn system_call(area: *mut u8, bytes: u32, flags: u32) -> isize {
    let result: isize;
    // SAFETY: the kernel writes to the area alone, by the caller's promise.
    unsafe {
        asm!(
            "svc #0",
            in("x8") libc::SYS_rseq as usize,
            inlateout("x0") area => result,
            in("x1") bytes as usize,
            in("x2") flags as usize,
            in("x3") SIGNATURE as usize,
            options(nostack)
        );
    }
    result
}
