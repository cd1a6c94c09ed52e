//! Builds the C sides of the benchmarks, which include the C face's own header.
//!
//! The program must build and run where there is no C compiler: then these sides are left out, and
//! `tallyline-bench` lists them with the reason.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The sources, in the order of the sides that they hold.
const SOURCES: [&str; 2] = ["src/sides/inline.c", "src/sides/call.c"];

/// The source that is compiled for AVX2: the update of lazy objects is inlined for that.
const FOR_AVX2: &str = "src/sides/lazy.c";

fn main() {
    println!("cargo:rustc-check-cfg=cfg(c_sides, c_lazy)");
    for source in SOURCES.into_iter().chain([FOR_AVX2, "src/sides/place.h"]) {
        println!("cargo:rerun-if-changed={source}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    let compiler = match build() {
        Ok(compiler) => {
            println!("cargo:rustc-cfg=c_sides");
            compiler
        }
        Err(reason) => format!("not built: {reason}"),
    };
    println!("cargo:rustc-env=TALLYLINE_C_COMPILER={compiler}");
}

/// Builds them; the compiler's name and version, or why there are none, in one line.
fn build() -> Result<String, String> {
    let linux_x86_64 = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if !linux_x86_64 {
        return Err("not Linux".into());
    }
    let include = include_folder()?;
    println!("cargo:rerun-if-changed={}", include.display());
    let mut build = cc::Build::new();
    build
        .include(&include)
        .opt_level(2)
        .std("c11")
        .warnings(true)
        .cargo_warnings(true)
        // as the loops of the other sides are
        .flag_if_supported("-fno-unroll-loops")
        .flag_if_supported("-falign-loops=16");
    let compiler = build.try_get_compiler().map_err(|_| "no C compiler found".to_owned())?;
    let version = version(compiler.path()).ok_or("no C compiler found")?;
    let compile = |build: &mut cc::Build, library: &str| {
        build.try_compile(library).map_err(|error| {
            println!("cargo:warning=C sides of the benchmarks are left out: {error}");
            format!("{version} refused the sources")
        })
    };
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64")
        && compile(build.clone().file(FOR_AVX2).flag("-mavx2"), "tallyline_c_lazy").is_ok()
    {
        println!("cargo:rustc-cfg=c_lazy");
    }
    compile(build.files(SOURCES), "tallyline_c_sides")?;
    Ok(version)
}

/// Returns the folder of statctr.h, which the build script of statctr-capi names.
fn include_folder() -> Result<PathBuf, String> {
    let folder =
        PathBuf::from(std::env::var_os("DEP_STATCTR_INCLUDE").ok_or("statctr-capi names no headers")?);
    if folder.join("statctr.h").is_file() { Ok(folder) } else { Err("statctr.h not found".into()) }
}

fn version(compiler: &Path) -> Option<String> {
    let output = Command::new(compiler).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().next()?.trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}
