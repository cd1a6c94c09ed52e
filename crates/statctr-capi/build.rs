//! Links the shared library so that it stays loaded once it is: threads keep the addresses of its
//! sections, and the process those of its fork handlers (see `statctr_prepare_unload`). Dependants' build scripts get
//! the folder of the headers in `DEP_STATCTR_INCLUDE`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if let Some(here) = std::env::var_os("CARGO_MANIFEST_DIR") {
        println!("cargo:include={}", std::path::Path::new(&here).join("include").display());
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
