//! Functions that count and that nobody calls are dropped by a linker that drops unused ones, and
//! those that are called go on to count: C and C++, with every compiler and linker that is here.
//!
//! Where there is no compiler or linker of a kind, that kind is left out with a message.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Functions in dead_code.c that nobody calls.
const DEAD: usize = 20;

fn works(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: there is no {program}");
    }
    found
}

/// A folder that goes with this.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder to build in");
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    /// Compiles dead_code.c.
    fn compile(&self, compiler: &str, flags: &[&str]) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let language = if compiler.contains("++") { "c++" } else { "c" };
        let mut command = Command::new(compiler);
        command.args(["-c", "-O2", "-D_GNU_SOURCE", "-ffunction-sections", "-x", language]).args(flags);
        command.arg("-I").arg(root.join("include")).arg("-o").arg(self.0.join("object.o"));
        succeeds(command.arg(root.join("tests/c/dead_code.c")));
    }

    /// Links it: the program.
    fn link(&self, compiler: &str, flags: &[&str], libraries: &[PathBuf]) -> PathBuf {
        let program = self.0.join("program");
        let mut command = Command::new(compiler);
        command.args(["-pthread", "-Wl,--gc-sections"]).args(flags).arg("-o").arg(&program);
        succeeds(command.arg(self.0.join("object.o")).args(libraries).args(["-ldl", "-lm"]));
        program
    }
}

fn succeeds(command: &mut Command) {
    let output = command.output().expect("the compiler runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{errors}");
}

/// Returns the number of functions in the program that nobody calls; the one that is called is.
fn dead_in(program: &Path) -> usize {
    let output = Command::new("nm").arg(program).output().expect("nm");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8_lossy(&output.stdout);
    let names: Vec<&str> = names.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert!(names.contains(&"live"), "what is called is kept");
    names.iter().filter(|name| name.starts_with("dead_")).count()
}

fn static_library() -> PathBuf {
    let own = std::env::current_exe().expect("the path of this test");
    own.parent().expect("a folder").join("libstatctr_capi.a")
}

#[test]
fn unused_functions_are_dropped_and_used_ones_count() {
    if !works("nm") {
        return;
    }
    let folder = Folder::new("dead-code");
    // all sections there are, and a program at a fixed place
    let wide = if cfg!(target_arch = "x86_64") { "-march=x86-64-v4" } else { "-O2" };
    for compiler in ["gcc", "g++", "clang", "clang++"].into_iter().filter(|compiler| works(compiler)) {
        for (compiled, linked) in [(&["-fPIE"][..], "-pie"), (&["-fno-pic", wide], "-no-pie")] {
            folder.compile(compiler, compiled);
            for linker in ["bfd", "lld"].into_iter().filter(|linker| works(&format!("ld.{linker}"))) {
                let how = format!("{compiler} {compiled:?}, {linker}");
                let flags = [linked, &format!("-fuse-ld={linker}")];
                let program = folder.link(compiler, &flags, &[static_library()]);
                assert_eq!(dead_in(&program), 0, "{how}");
                // the machine need not have the wide vectors
                if linked == "-pie" {
                    succeeds(&mut Command::new(&program));
                }
                println!("{how}: 0 of {DEAD} unused functions are kept");
            }
        }
    }
}

#[test]
fn descriptors_in_one_section_would_keep_all_of_them() {
    if !works("nm") || !works("gcc") {
        return;
    }
    let folder = Folder::new("kept-code");
    folder.compile("gcc", &["-DSTATCTR_NO_LINK_ORDER"]);
    let program = folder.link("gcc", &[], &[static_library()]);
    assert_eq!(dead_in(&program), DEAD);
    succeeds(&mut Command::new(&program));
}

#[test]
fn unused_functions_are_dropped_on_aarch64() {
    let compiler = "aarch64-linux-gnu-gcc";
    if !works("nm") || !works(compiler) {
        return;
    }
    let folder = Folder::new("dead-code-aarch64");
    folder.compile(compiler, &[]);
    for linker in ["aarch64-linux-gnu-ld", "ld.lld"].into_iter().filter(|linker| works(linker)) {
        // there is no library of that machine here, and what it would define is not looked at
        let program = folder.0.join("program");
        let mut command = Command::new(linker);
        command.args(["--gc-sections", "--unresolved-symbols=ignore-all", "--entry=live", "-o"]);
        succeeds(command.arg(&program).arg(folder.0.join("object.o")));
        assert_eq!(dead_in(&program), 0, "{linker}");
    }
}
