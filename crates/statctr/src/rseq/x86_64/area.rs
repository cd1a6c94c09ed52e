//! The threads' own area, and what it takes to register it, for x86-64.

use std::arch::{asm, naked_asm};

/// The four bytes (`RSEQ_SIG`) that the kernel requires before each rseq critical section's abort handler.
pub(crate) const SIGNATURE: u32 = 0x5305_3053;

/// A function that returns the offset of a thread-local symbol from the thread pointer, where it is
/// the same in every thread, and 0 where it is not.
///
/// By TLS descriptors. A program's own variables and those of libraries that are loaded with it lie at
/// one offset in all threads; a library that is loaded later (`dlopen`) gets room there while there is
/// some, and else memory that each thread has elsewhere. The linker turns the descriptor's call into
/// the offset itself where that is known, so rax is the same before and after it; else the loader
/// fills the descriptor in: a function that returns the second word is for a constant offset, any other
/// has a pointer there, which is no offset.
macro_rules! thread_local_offset {
    ($(#[$doc:meta])* $name:ident = $symbol:expr; $definition:expr) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() -> isize {
            naked_asm!(
                $definition,
                // such a call keeps all registers but rax; the stack is aligned for a call
                "push rcx",
                concat!("lea rax, [rip + ", $symbol, "@tlsdesc]"),
                "mov rcx, rax",
                concat!("call qword ptr [rax + ", $symbol, "@tlscall]"),
                "cmp rax, rcx",
                "je 2f",
                "cmp rax, qword ptr [rcx + 8]",
                "je 2f",
                "xor eax, eax",
                "2: pop rcx",
                "ret"
            )
        }
    };
}

pub(super) use thread_local_offset;

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
    // SAFETY: by the ABI the word at fs:0 is its own address.
    unsafe { asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly)) };
    pointer
}

/// Makes the system call `rseq`, which registers a thread's area; returns 0 or a negated error number, and leaves
/// `errno` alone.
///
/// # Safety
/// For a registration `area` is the calling thread's alone, 32 bytes, aligned to as many, and lives
/// until it is unregistered or the thread ends.
pub(crate) unsafe fn system_call(area: *mut u8, bytes: u32, flags: u32) -> isize {
    let mut result = libc::SYS_rseq as isize;
    // SAFETY: the kernel writes to the area alone, by the caller's promise.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") result,
            in("rdi") area,
            in("rsi") bytes as usize,
            in("rdx") flags as usize,
            in("r10") SIGNATURE as usize,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    result
}
