//! The source files of declarations, from the paths in debug information.

use std::path::{Component, Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Rules that map the source paths in debug information to files on this machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// Prefixes as the compiler wrote them, and the folders that they stand for.
    pub(crate) maps: Vec<(String, String)>,
    /// Folders that units were compiled in.
    pub(crate) folders: Vec<String>,
}

impl Places {
    /// Returns the existing files, with symbolic links resolved, that a source path in debug information may mean.
    pub(crate) fn files(&self, declared: &str) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = Vec::new();
        let relative = !declared.starts_with('/');
        let folders = self.folders.iter().map(String::as_str).filter(|_| relative);
        let joined = folders.map(|folder| Path::new(folder).join(declared).to_string_lossy().into_owned());
        for path in joined.chain([declared.to_string()]) {
            for path in self.mapped(&path) {
                // without the file system: a folder on the way may be gone
                for path in [path.clone(), normal(&path)] {
                    if let Ok(path) = path.canonicalize()
                        && path.is_file()
                        && !files.contains(&path)
                    {
                        files.push(path);
                    }
                }
            }
        }
        files
    }

    fn mapped(&self, path: &str) -> Vec<PathBuf> {
        let mapped = self.maps.iter().find_map(|(old, new)| {
            let rest = path.strip_prefix(old.as_str())?;
            Some(PathBuf::from(format!("{new}{rest}")))
        });
        mapped.into_iter().chain([PathBuf::from(path)]).collect()
    }
}

/// Parses the value `OLD=NEW` of option `--source-map`: a prefix of source paths in debug information, and the folder
/// that it stands for.
pub(crate) fn parse_map(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() => Ok((old.to_string(), new.to_string())),
        _ => Err("expected OLD=NEW, a prefix in debug information and the folder that it stands for".into()),
    }
}

/// Returns `true` if a file is a C or C++ header by its extension.
pub(crate) fn is_header(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    matches!(end, "h" | "inc" | "hh" | "hpp" | "hxx" | "h++" | "H" | "ipp" | "tcc" | "inl")
}

/// Normalises a path lexically: removes `.` and resolves `..` without looking at the file system.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Returns the root folder of the project that a source file belongs to: the nearest with `.git`, else the
/// outermost with a build file such as `Cargo.toml`; `None` if there is none.
pub(crate) fn root_of(file: &Path) -> Option<PathBuf> {
    const BUILD_FILES: [&str; 8] = [
        "compile_commands.json",
        "Cargo.lock",
        "configure",
        "configure.ac",
        "CMakeLists.txt",
        "Makefile",
        "meson.build",
        "Cargo.toml",
    ];
    let folders = || file.ancestors().skip(1);
    let repository = folders().find(|folder| folder.join(".git").exists());
    let with_build_file =
        || folders().filter(|folder| BUILD_FILES.iter().any(|name| folder.join(name).is_file())).last();
    repository.map(Path::to_path_buf).or_else(|| with_build_file().map(Path::to_path_buf))
}

/// The folders in which cargo looks for a package's targets.
const TARGET_FOLDERS: [&str; 4] = ["src", "tests", "examples", "benches"];

/// Returns the path of the Rust module that a source file is by its place in a package that cargo builds, from the
/// folder of the target on: `src/list/node.rs` is `["list", "node"]`, a crate's root is empty. `None` for a file outside
/// of these folders, and for all files of a package whose manifest has a target there.
pub(crate) fn rust_module(file: &Path) -> Option<Vec<String>> {
    let package = file.ancestors().skip(1).find(|folder| folder.join("Cargo.toml").is_file())?;
    if !has_usual_targets(&std::fs::read_to_string(package.join("Cargo.toml")).ok()?) {
        return None;
    }
    let mut parts = file.strip_prefix(package).ok()?.components().map(|part| part.as_os_str().to_str());
    if !TARGET_FOLDERS.contains(&parts.next()??) {
        return None;
    }
    let mut module: Vec<String> = parts.map(|part| part.map(str::to_owned)).collect::<Option<_>>()?;
    let last = module.pop()?;
    match last.strip_suffix(".rs")? {
        "mod" => {}
        "lib" | "main" if module.is_empty() => {}
        name => module.push(name.to_owned()),
    }
    Some(module)
}

/// Returns `true` if all targets that a manifest of cargo names are in the folders where cargo looks for them.
fn has_usual_targets(manifest: &str) -> bool {
    let Ok(manifest) = DeTable::parse(manifest) else { return false };
    let is_usual = |target: &Spanned<DeValue<'_>>| {
        let path = target.get_ref().as_table().and_then(|target| target.get("path")?.get_ref().as_str());
        path.is_none_or(|path| {
            let path = normal(Path::new(path));
            TARGET_FOLDERS.iter().any(|folder| path.starts_with(folder))
        })
    };
    let kinds = ["lib", "bin", "test", "example", "bench"];
    kinds.into_iter().filter_map(|kind| manifest.get_ref().get(kind)).all(|targets| match targets.get_ref() {
        DeValue::Array(all) => all.iter().all(is_usual),
        _ => is_usual(targets),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rust_module_is_named_by_its_file_below_a_folder_of_targets() {
        let folder = std::env::temp_dir().join(format!("tallyline-module-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("Cargo.toml"), "").expect("a file");
        let module = |file: &str| rust_module(&folder.join(file)).map(|module| module.join("::"));
        let expected = [
            ("src/lib.rs", Some("")),
            ("src/list.rs", Some("list")),
            ("src/list/mod.rs", Some("list")),
            ("src/list/node.rs", Some("list::node")),
            ("src/list/lib.rs", Some("list::lib")),
            ("tests/common/mod.rs", Some("common")),
            ("original/list.rs", None),
            ("list.rs", None),
        ];
        for (file, expected) in expected {
            assert_eq!(module(file).as_deref(), expected, "{file}");
        }
        std::fs::write(folder.join("Cargo.toml"), "[lib]\npath = \"./src/lib.rs\"").expect("a file");
        assert_eq!(module("src/list.rs").as_deref(), Some("list"));
        std::fs::write(folder.join("Cargo.toml"), "[[bin]]\npath = \"original/main.rs\"").expect("a file");
        assert_eq!(module("src/list.rs"), None, "another file may be that module");
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn paths_are_relative_to_a_unit_and_mapped() {
        let folder = std::env::temp_dir().join(format!("tallyline-place-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("src")).expect("a folder");
        std::fs::write(folder.join("src/a.h"), "").expect("a file");
        let folder = folder.canonicalize().expect("it is there");
        let places = Places {
            maps: vec![("/build/x".into(), folder.to_string_lossy().into_owned())],
            folders: vec!["/build/x/lib".into()],
        };
        let expected = [folder.join("src/a.h")];
        assert_eq!(places.files("../src/a.h"), expected);
        assert_eq!(places.files("/build/x/src/a.h"), expected);
        assert_eq!(places.files("b.h"), [] as [PathBuf; 0]);
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
