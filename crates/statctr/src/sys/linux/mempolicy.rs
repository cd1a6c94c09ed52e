//! NUMA policies of memory and threads.

use crate::cpu::NodeId;

/// `MPOL_PREFERRED` of the kernel: this node if it has memory, else any.
const PREFERRED: libc::c_int = 1;

/// Returns the node in a mask as the kernel takes it.
fn mask_of(node: NodeId) -> Option<[u64; 16]> {
    let mut nodes = [0u64; 16];
    *nodes.get_mut(node.get() as usize / 64)? |= 1 << (node.get() % 64);
    Some(nodes)
}

/// Sets the NUMA node from which the pages of an address range are preferably allocated (`mbind`); errors are ignored.
pub(crate) fn prefer_for(start: *mut u8, len: usize, node: NodeId) {
    if let Some(nodes) = mask_of(node) {
        let bits = nodes.len() * 64;
        // SAFETY: the kernel reads at most `bits` bits, and changes where pages come from, not what
        // is in them.
        unsafe { libc::syscall(libc::SYS_mbind, start, len, PREFERRED, nodes.as_ptr(), bits, 0) };
    }
}

/// Runs `work` while pages that the calling thread touches first are preferably allocated on `node` (`set_mempolicy`),
/// if the kernel permits that; restores the thread's policy and returns the closure's result.
pub(crate) fn prefer_node<R>(node: NodeId, work: impl FnOnce() -> R) -> R {
    let mut old_mode: libc::c_int = 0;
    let mut old_nodes = [0u64; 16];
    let bits = old_nodes.len() * 64;
    // SAFETY: the kernel writes a mode and at most `bits` bits.
    let known = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut old_mode,
            old_nodes.as_mut_ptr(),
            bits,
            0usize,
            0usize,
        )
    } == 0;
    let Some(nodes) = mask_of(node).filter(|_| known) else { return work() };
    // SAFETY: the kernel reads at most `bits` bits; the policy concerns this thread only.
    let set = unsafe { libc::syscall(libc::SYS_set_mempolicy, PREFERRED, nodes.as_ptr(), bits) } == 0;
    let result = work();
    if set {
        // SAFETY: as above, with what the kernel said.
        unsafe { libc::syscall(libc::SYS_set_mempolicy, old_mode, old_nodes.as_ptr(), bits) };
    }
    result
}
