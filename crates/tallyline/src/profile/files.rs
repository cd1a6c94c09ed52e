//! Where the programs of a recording are on this machine.

use super::InputArgs;
use crate::layout::{Beside, debug_file};
use std::fs::File;
use std::path::{Path, PathBuf};
use tallyline_profile::code::Image;
use tallyline_profile::perfdata::file::Features;
use tallyline_profile::perfdata::jit::JitMap;
use tallyline_profile::perfdata::spaces::{Dso, DsoKind};
use tallyline_profile::report::programs::{Debug, Program, Programs, kallsyms};

/// Finds programs by their paths, under another root if there is one, and by their build-ids.
pub(super) struct Files {
    symfs: Option<PathBuf>,
    vmlinux: Option<PathBuf>,
    kallsyms: Option<PathBuf>,
    is_this_kernel: bool,
}

impl Files {
    pub(super) fn new(args: &InputArgs, features: &Features) -> Files {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Files {
            symfs: args.symfs.clone(),
            vmlinux: args.vmlinux.clone(),
            kallsyms: args.kallsyms.clone(),
            is_this_kernel: features.os_release.as_deref() == Some(release.trim())
                && features.hostname.as_deref() == Some(host.trim()),
        }
    }

    /// Where the file of a recording may be, the best place first.
    fn places(&self, dso: &Dso) -> Vec<PathBuf> {
        if dso.kind == DsoKind::Kernel {
            return self.vmlinux.iter().cloned().collect();
        }
        let mut places = Vec::new();
        if let Some(root) = &self.symfs {
            let path = Path::new(&dso.path);
            places.push(root.join(path.strip_prefix("/").unwrap_or(path)));
            // an archive without the folders
            places.extend(path.file_name().map(|name| root.join(name)));
        } else {
            places.push(PathBuf::from(&dso.path));
        }
        if let Some(id) = &dso.build_id {
            let id = id.to_string();
            let (first, rest) = id.split_at(id.len().min(2));
            let cache = self.symfs.clone().or_else(|| std::env::home_dir().map(|home| home.join(".debug")));
            places.extend(cache.map(|cache| cache.join(".build-id").join(first).join(rest).join("elf")));
        }
        places
    }
}

impl Programs for Files {
    fn open(&self, dso: &Dso) -> Result<Program, String> {
        if dso.kind == DsoKind::Kernel && self.vmlinux.is_none() {
            return Err("no kernel file; give one with --vmlinux".to_owned());
        }
        let mut why = "no such file here; give its root with --symfs".to_owned();
        for path in self.places(dso) {
            // a path of a recording may be a pipe's here, which would never open
            if !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
                continue;
            }
            match open(&path, dso) {
                Ok(program) => return Ok(program),
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

pub(crate) fn open(path: &Path, dso: &Dso) -> Result<Program, String> {
    let file = File::open(path).map_err(|error| format!("cannot be opened: {error}"))?;
    let image = Image::read(&file).map_err(|error| error.to_string())?;
    if let (Some(recorded), Some(own)) = (&dso.build_id, image.build_id())
        && !own.starts_with(recorded.as_bytes())
    {
        return Err("the file here is of another build; give the right one with --symfs".to_owned());
    }
    let has_dwarf = |file: &File| {
        tallyline_layout::formats(file)
            .is_ok_and(|formats| formats.contains(&tallyline_layout::Format::Dwarf))
    };
    let mut btf = None;
    let debug = if has_dwarf(&file) {
        Some(Debug { file, companions: Box::new(Beside::new(path)), symbols: None })
    } else {
        match debug_file::find(path, &file) {
            Some(Ok((debug_path, debug))) => Some(Debug {
                symbols: Image::read(&debug).ok(),
                file: debug,
                companions: Box::new(Beside::of_debug_file(&debug_path, path)),
            }),
            _ => {
                if dso.kind == DsoKind::Kernel {
                    btf = Image::section(&file, ".BTF").map_err(|error| error.to_string())?;
                }
                None
            }
        }
    };
    Ok(Program { image, debug, btf })
}
