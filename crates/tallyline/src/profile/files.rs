//! Locations of a recording's programs on this machine.

use super::{Cache, InputArgs};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tallyline_debuginfo::locate::debuginfod::{self, Artifact};
use tallyline_debuginfo::locate::{CompanionFinder, debug_file};
use tallyline_inference::code::Image;
use tallyline_perf_data::file::Features;
use tallyline_perf_data::jit::JitMap;
use tallyline_perf_data::recorder::Vdso;
use tallyline_perf_data::spaces::{Dso, DsoKind};
use tallyline_report::programs::{Debug, Program, Programs, kallsyms};

/// Finds programs by their paths, under another root if there is one, and by their build-ids.
pub(super) struct Files {
    symfs: Option<PathBuf>,
    vmlinux: Option<PathBuf>,
    kallsyms: Option<PathBuf>,
    release: Option<String>,
    is_this_machine: bool,
    is_this_kernel: bool,
    cache: Option<Cache>,
    vdso: OnceLock<Option<File>>,
}

/// Returns the folder of perf's build-id cache, `~/.debug`; `None` if the user's home folder is not known.
pub(crate) fn builds_folder() -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.join(".debug"))
}

impl Files {
    pub(super) fn new(args: &InputArgs, features: &Features) -> Files {
        let own =
            |name| std::fs::read_to_string(Path::new("/proc/sys/kernel").join(name)).unwrap_or_default();
        let is_this_machine = features.hostname() == Some(own("hostname").trim());
        Files {
            symfs: args.symfs.clone(),
            vmlinux: args.vmlinux.clone(),
            kallsyms: args.kallsyms.clone(),
            cache: Cache::of_user(args.no_cache),
            release: features.os_release().map(str::to_owned),
            vdso: OnceLock::new(),
            is_this_machine,
            is_this_kernel: is_this_machine && features.os_release() == Some(own("osrelease").trim()),
        }
    }

    /// Returns the candidate paths of a recorded file, the best first.
    fn places(&self, dso: &Dso) -> Vec<PathBuf> {
        if dso.kind() == DsoKind::Kernel {
            return self.kernels(dso);
        }
        if dso.kind() == DsoKind::Vdso {
            return self.in_archive(dso).into_iter().chain(self.own_vdso(dso)).collect();
        }
        let mut places = Vec::new();
        if let Some(root) = &self.symfs {
            let path = Path::new(dso.path());
            places.push(root.join(path.strip_prefix("/").unwrap_or(path)));
            // an archive without the folders
            places.extend(path.file_name().map(|name| root.join(name)));
        } else {
            places.push(PathBuf::from(dso.path()));
            // numbers of processes are used again: only the build tells
            if self.is_this_machine && dso.build_id().is_some() {
                let roots = dso.processes().iter().map(|pid| format!("/proc/{pid}/root{}", dso.path()));
                places.extend(roots.map(PathBuf::from));
            }
        }
        places.extend(self.in_archive(dso));
        places
    }

    /// Returns the candidate paths of the kernel: as named, or where distributions and builds put it.
    fn kernels(&self, dso: &Dso) -> Vec<PathBuf> {
        if let Some(vmlinux) = &self.vmlinux {
            return vec![vmlinux.clone()];
        }
        // another kernel of the same version would be taken for it
        if dso.build_id().is_none() {
            return Vec::new();
        }
        let root = self.symfs.clone().unwrap_or_else(|| "/".into());
        let mut places = vec![root.join("vmlinux"), root.join("boot/vmlinux")];
        if let Some(release) = self.release.as_deref().filter(|release| !release.contains('/')) {
            places.extend(
                [
                    format!("boot/vmlinux-{release}"),
                    format!("usr/lib/debug/boot/vmlinux-{release}"),
                    format!("usr/lib/debug/boot/vmlinux-{release}.debug"),
                    format!("usr/lib/debug/lib/modules/{release}/vmlinux"),
                    format!("lib/modules/{release}/build/vmlinux"),
                    format!("lib/modules/{release}/vmlinux"),
                ]
                .map(|place| root.join(place)),
            );
        }
        places.extend(self.in_archive(dso));
        places
    }

    /// Returns the path in perf's build-id cache: the user's own, or that of an archive.
    fn in_archive(&self, dso: &Dso) -> Option<PathBuf> {
        let id = dso.build_id().as_ref()?.to_string();
        let (first, rest) = id.split_at_checked(2)?;
        let folder = self.symfs.clone().or_else(builds_folder)?;
        let name = if dso.kind() == DsoKind::Vdso { "vdso" } else { "elf" };
        Some(folder.join(".build-id").join(first).join(rest).join(name))
    }

    /// Returns this machine's vdso as a file without a name, where the recording's may be the same.
    fn own_vdso(&self, dso: &Dso) -> Option<PathBuf> {
        // without a build-id only the kernel tells
        if dso.build_id().is_none() && !self.is_this_kernel || dso.path() != "[vdso]" {
            return None;
        }
        let file = self.vdso.get_or_init(|| {
            let vdso = Vdso::own()?;
            let path = std::env::temp_dir().join(format!("tallyline-vdso-{}", std::process::id()));
            let mut file = File::options().read(true).write(true).create_new(true).open(&path).ok()?;
            let written = file.write_all(vdso.bytes());
            std::fs::remove_file(&path).and(written).ok()?;
            Some(file)
        });
        file.as_ref().map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()).into())
    }

    /// Returns `true` if a file needs no build ID: a kernel named by the user, or any other file outside `/proc`.
    fn is_named(&self, path: &Path, dso: &Dso) -> bool {
        match dso.kind() {
            DsoKind::Kernel => self.vmlinux.is_some(),
            _ => !path.starts_with("/proc"),
        }
    }

    /// Says where the table of a program's types is kept, and where its decoded functions are.
    fn with_stores(&self, program: Program) -> Program {
        let cache = self.cache.as_ref().filter(|_| program.debug().is_some());
        let kept = cache.and_then(|cache| cache.of_build(program.image().build_id()));
        match kept {
            Some([types, code]) => program.with_stores(Box::new(types), Box::new(code)),
            None => program,
        }
    }

    /// Returns the file of a build from a server.
    fn fetched(&self, dso: &Dso) -> Option<PathBuf> {
        let artifact = match dso.kind() {
            // servers have it as debug information
            DsoKind::Kernel if self.vmlinux.is_none() => Artifact::DebugInfo,
            DsoKind::Kernel => return None,
            _ => Artifact::Executable,
        };
        debuginfod::find(artifact, dso.build_id().as_ref()?.as_bytes())
    }
}

impl Programs for Files {
    fn open(&self, dso: &Dso) -> Result<Program, String> {
        let mut why = match dso.kind() {
            DsoKind::Kernel => "no kernel file; give one with --vmlinux",
            _ => "no such file here; give its root with --symfs",
        }
        .to_owned();
        let fetched = std::iter::once_with(|| self.fetched(dso)).flatten();
        for path in self.places(dso).into_iter().chain(fetched) {
            // a path of a recording may be a pipe's here, which would never open
            if !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
                continue;
            }
            match open(&path, dso, self.symfs.as_deref()) {
                Ok(program) if self.is_named(&path, dso) || program.image().build_id().is_some() => {
                    return Ok(self.with_stores(program));
                }
                Ok(_) => {}
                Err(reason) => why = reason,
            }
        }
        Err(why)
    }

    fn jit(&self, pid: i32) -> Option<JitMap> {
        let path = JitMap::path(pid);
        let root = self.symfs.clone().unwrap_or_else(|| "/".into());
        std::fs::read(root.join(path.trim_start_matches('/'))).ok().map(|text| JitMap::parse(&text))
    }

    fn kernel(&self) -> Option<JitMap> {
        let own = self.is_this_kernel.then(|| PathBuf::from("/proc/kallsyms"));
        kallsyms(&std::fs::read(self.kallsyms.clone().or(own)?).ok()?)
    }
}

/// Opens the file of a program or library that a recording names, with its debug information, for which a debug file is
/// also looked for under `root`. The error says why the file cannot be used, such as another build-id than the recorded
/// one.
pub(crate) fn open(path: &Path, dso: &Dso, root: Option<&Path>) -> Result<Program, String> {
    let file = File::open(path).map_err(|error| format!("cannot be opened: {error}"))?;
    let mut image = Image::read_any_machine(&file).map_err(|error| error.to_string())?;
    if let (Some(recorded), Some(own)) = (&dso.build_id(), image.build_id())
        && !own.starts_with(recorded.as_bytes())
    {
        let option = if dso.kind() == DsoKind::Kernel { "--vmlinux" } else { "--symfs" };
        return Err(format!("the file here is of another build; give the right one with {option}"));
    }
    let has_dwarf = |file: &File| {
        tallyline_debuginfo::formats(file)
            .is_ok_and(|formats| formats.contains(&tallyline_debuginfo::Format::Dwarf))
    };
    let mut btf = None;
    let debug = if has_dwarf(&file) {
        Some(Debug::new(file, Box::new(CompanionFinder::new(path)), None))
    } else {
        match debug_file::find(path, &file, root) {
            Some(Ok((debug_path, debug))) => {
                let symbols = Image::read_any_machine(&debug).ok();
                symbols.iter().for_each(|symbols| image.set_debug_symbols(symbols));
                let companions = Box::new(CompanionFinder::of_debug_file(&debug_path, path));
                Some(Debug::new(debug, companions, symbols))
            }
            _ => {
                if dso.kind() == DsoKind::Kernel {
                    btf = Image::section(&file, ".BTF").map_err(|error| error.to_string())?;
                }
                None
            }
        }
    };
    Ok(Program::new(image, debug, btf))
}
