//! Objects that the loader loaded, and that are to stay.

use std::ffi::{CStr, c_int, c_void};

/// Keeps the shared library that was loaded from `file` (empty: the program) in memory until the process ends, even if
/// it is unloaded (`dlclose`). Returns `false` if it is not loaded any more.
pub(crate) fn keep_loaded(file: &CStr) -> bool {
    // musl unloads nothing, and nobody the program
    if cfg!(not(target_env = "gnu")) || file.is_empty() {
        return true;
    }
    // by name, as a reference would make static programs be linked with a warning
    // SAFETY: a name that ends.
    let dlopen = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"dlopen".as_ptr()) };
    if dlopen.is_null() {
        return false;
    }
    // SAFETY: the C library's function of this name.
    let dlopen: extern "C" fn(*const libc::c_char, c_int) -> *mut c_void =
        unsafe { std::mem::transmute(dlopen) };
    !dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE).is_null()
}

/// Keeps the program or shared library that contains this code in memory until the process ends, even if it is unloaded
/// (`dlclose`). Returns `false` if it cannot be found.
#[cfg(target_arch = "x86_64")]
pub(crate) fn keep_this_object() -> bool {
    unsafe extern "C" fn visit(object: *mut libc::dl_phdr_info, _size: usize, state: *mut c_void) -> c_int {
        // SAFETY: the loader's description of an object, and the pair below.
        let (object, (is_program, kept)) = unsafe { (&*object, &mut *state.cast::<(bool, bool)>()) };
        let here = (visit as *const c_void).addr();
        // SAFETY: so many headers, by the loader.
        let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
        let is_here = headers.iter().filter(|header| header.p_type == libc::PT_LOAD).any(|header| {
            let start = object.dlpi_addr.wrapping_add(header.p_vaddr) as usize;
            here.wrapping_sub(start) < header.p_memsz as usize
        });
        if is_here {
            // the first object is the program, which nobody unloads
            // SAFETY: a string of the loader's.
            *kept = *is_program || keep_loaded(unsafe { CStr::from_ptr(object.dlpi_name) });
        }
        *is_program = false;
        is_here.into()
    }
    let mut state = (true, false);
    // SAFETY: `visit` takes what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut state).cast()) };
    state.1
}
