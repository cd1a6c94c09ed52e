//! The plugin for QEMU: its source is in this program, and is compiled where it is needed.

use crate::{Error, Result};
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: [(&str, &str); 15] = [
    ("file.c", include_str!("qemu/file.c")),
    ("file.h", include_str!("qemu/file.h")),
    ("flow.c", include_str!("qemu/flow.c")),
    ("flow.h", include_str!("qemu/flow.h")),
    ("futex.c", include_str!("qemu/futex.c")),
    ("futex.h", include_str!("qemu/futex.h")),
    ("machine.h", include_str!("qemu/machine.h")),
    ("mappings.c", include_str!("qemu/mappings.c")),
    ("mappings.h", include_str!("qemu/mappings.h")),
    ("plugin.c", include_str!("qemu/plugin.c")),
    ("qemu.h", include_str!("qemu/qemu.h")),
    ("table.c", include_str!("qemu/table.c")),
    ("table.h", include_str!("qemu/table.h")),
    ("window.c", include_str!("qemu/window.c")),
    ("window.h", include_str!("qemu/window.h")),
];

const FLAGS: [&str; 6] = ["-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-w"];

/// Compiles the tracing plugin for QEMU with `$CC` or `cc`, and returns the shared object's path.
///
/// The sources are part of this crate. The result is kept in a folder of `cache` named by a hash of sources, flags
/// and compiler, so that later calls only look it up.
///
/// # Errors
/// [`Error::Missing`] if there is no compiler or it fails, with what to install; errors of the file system.
pub fn build(cache: &Path) -> Result<PathBuf> {
    let compiler = std::env::var_os("CC").filter(|name| !name.is_empty()).unwrap_or_else(|| "cc".into());
    let mut hasher = DefaultHasher::new();
    (SOURCES, FLAGS, &compiler).hash(&mut hasher);
    let folder = cache.join(format!("qemu-plugin-{:016x}", hasher.finish()));
    let plugin = folder.join("tallyline-trace.so");
    if plugin.is_file() {
        return Ok(plugin);
    }
    fs::create_dir_all(&folder)?;
    for (name, text) in SOURCES {
        fs::write(folder.join(name), text)?;
    }
    compile(&compiler, &folder, &plugin)?;
    Ok(plugin)
}

fn compile(compiler: &OsString, folder: &Path, plugin: &Path) -> Result<()> {
    // who builds it at the same time sees all of it or nothing
    let unfinished = folder.join(format!("{}.so", std::process::id()));
    let sources = SOURCES.iter().map(|(name, _)| name).filter(|name| name.ends_with(".c"));
    let output = Command::new(compiler)
        .current_dir(folder)
        .args(FLAGS)
        .arg("-o")
        .arg(&unfinished)
        .args(sources)
        .output()
        .map_err(|error| {
            let name = compiler.display();
            Error::Missing(format!(
                "the C compiler {name}, which builds the plugin for QEMU, cannot be run ({error}): install it \
                 (Debian: apt install gcc libc6-dev), or name another one in CC"
            ))
        })?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let first = words.lines().find(|line| !line.trim().is_empty()).unwrap_or("it does not say why");
        return Err(Error::Missing(format!(
            "the C compiler {} cannot build the plugin for QEMU in {}: {first}",
            compiler.display(),
            folder.display()
        )));
    }
    Ok(fs::rename(unfinished, plugin)?)
}

/// Returns the folder for the tool's caches: `$XDG_CACHE_HOME/tallyline`, else `$HOME/.cache/tallyline`, else
/// `tallyline` in the temporary folder. It need not exist yet.
pub fn cache_folder() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("tallyline")
}
