//! Links the shared library so that it stays loaded once it is: threads keep the addresses of its
//! sections, and the process those of its fork handlers (see `statctr_prepare_unload`).

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
