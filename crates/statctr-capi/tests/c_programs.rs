//! Compiles the C and C++ programs beside this file with the machine's compilers and runs them.
//!
//! `ci/capi` runs this for every compiler, dialect, sanitizer and way of linking, by these variables:
//! - `STATCTR_TEST_CC`, `STATCTR_TEST_CXX`: the compilers (`cc`, `c++`)
//! - `STATCTR_TEST_CFLAGS`: more flags for both (none)
//! - `STATCTR_TEST_LINK`: `static` or `shared` (static)
//! - `STATCTR_TEST_RUNNER`: a command to run the programs with (none)
//!
//! Where there is no compiler, or a program needs what this machine does not have, a test passes
//! with a message.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const C_STRICT: &[&str] =
    &["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"];
const CXX_STRICT: &[&str] =
    &["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"];

/// `-Wconversion` is for the header; the checks compare what they like.
const C_RELAXED: &[&str] = &["-Wno-conversion", "-Wno-sign-conversion"];

fn variable(name: &str, otherwise: &str) -> String {
    std::env::var(name).ok().filter(|value| !value.is_empty()).unwrap_or_else(|| otherwise.into())
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn sanitized() -> bool {
    variable("STATCTR_TEST_CFLAGS", "").contains("-fsanitize")
}

fn works(program: &str, argument: &str) -> bool {
    Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success())
}

#[allow(unsafe_code)] // there is no safe way to ask
fn is_root() -> bool {
    // SAFETY: takes nothing and always succeeds.
    unsafe { libc::geteuid() == 0 }
}

/// Returns the folder of the libraries: cargo puts them beside this test.
fn libraries() -> PathBuf {
    let own = std::env::current_exe().expect("the path of this test");
    own.parent().expect("a folder").to_owned()
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// A program under construction.
struct Build {
    name: String,
    command: Command,
    target: PathBuf,
}

impl Build {
    fn new(compiler: &str, name: &str, flags: &[&str]) -> Option<Build> {
        if !works(compiler, "--version") {
            println!("skipped: there is no {compiler}");
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder to build in");
        let target = folder.join(name);
        let mut command = Command::new(compiler);
        command.args(["-O2", "-g", "-pthread"]).args(flags);
        command.arg("-I").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"));
        command.arg("-o").arg(&target);
        Some(Build { name: name.into(), command, target })
    }

    fn c(source: &str) -> Option<Build> {
        Build::c_named(source, source)
    }

    fn c_named(name: &str, source: &str) -> Option<Build> {
        Build::c_by(&variable("STATCTR_TEST_CC", "cc"), name, source)
    }

    fn c_by(compiler: &str, name: &str, source: &str) -> Option<Build> {
        let mut build = Build::new(compiler, name, C_STRICT)?;
        build.command.args(C_RELAXED).arg(sources().join("c").join(format!("{source}.c")));
        Some(build)
    }

    fn flags<'a>(mut self, flags: impl IntoIterator<Item = &'a str>) -> Build {
        self.command.args(flags);
        self
    }

    fn link(mut self) -> Program {
        self.command.args(words(&variable("STATCTR_TEST_CFLAGS", "")));
        let libraries = libraries();
        if variable("STATCTR_TEST_LINK", "static") == "shared" {
            self.command.arg("-L").arg(&libraries).arg("-lstatctr_capi");
            self.command.arg(format!("-Wl,-rpath,{}", libraries.display()));
        } else {
            self.command.arg(libraries.join("libstatctr_capi.a"));
        }
        self.command.args(["-ldl", "-lm"]);
        self.compile()
    }

    /// Builds the program without the library, unless that was added.
    fn compile(mut self) -> Program {
        let output = self.command.output().expect("the compiler runs");
        assert!(
            output.status.success(),
            "{} does not compile:\n{:?}\n{}",
            self.name,
            self.command,
            String::from_utf8_lossy(&output.stderr)
        );
        Program(self.target)
    }
}

/// A program that was built. Its folder goes with it.
struct Program(PathBuf);

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(folder) = self.0.parent() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

impl Program {
    /// Returns the command that runs it, in front of which `prefix` may stand.
    fn command(&self, prefix: &[&str]) -> Command {
        let mut line: Vec<String> = prefix.iter().map(|&word| word.to_owned()).collect();
        line.extend(words(&variable("STATCTR_TEST_RUNNER", "")));
        line.push(self.0.display().to_string());
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]);
        command
    }

    fn run(&self, arguments: &[&str]) {
        passes(self.command(&[]).args(arguments));
    }
}

fn passes(command: &mut Command) -> Output {
    let output = command.output().expect("the program starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    print!("{out}");
    output
}

/// Builds and runs a program that takes no arguments, inline and without.
fn both_ways(source: &str) {
    if let Some(build) = Build::c(source) {
        build.link().run(&[]);
    }
    if let Some(build) = Build::c_named(&format!("{source}-calls"), source) {
        build.flags(["-DSTATCTR_NO_INLINE"]).link().run(&[]);
    }
}

#[test]
fn counts_are_exact_under_migration() {
    both_ways("exact");
}

#[test]
fn groups_and_events() {
    both_ways("groups");
}

#[test]
fn histograms_and_extremes() {
    both_ways("kinds");
}

#[test]
fn events_in_wide_registers() {
    for (level, feature) in [("v3", "avx2"), ("v4", "avx512vl")] {
        let there = std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|info| info.contains(feature));
        // groups, and lazy objects
        for program in ["groups", "placements"] {
            let Some(build) = Build::c_named(&format!("{program}-{level}"), program) else { return };
            let program = build.flags([format!("-march=x86-64-{level}").as_str()]).link();
            if there { program.run(&[]) } else { println!("built, not run: this machine has no {feature}") }
        }
    }
    // clang has sections for AVX-512 in files for any machine; other compilers here are for other machines
    if std::env::var_os("STATCTR_TEST_CC").is_none() {
        for program in ["groups", "placements"] {
            if let Some(build) = Build::c_by("clang", &format!("{program}-clang"), program) {
                build.link().run(&[]);
            }
        }
    }
    // without optimization the compiler has registers to spare for nothing
    for program in ["groups", "placements"] {
        if let Some(build) = Build::c_named(&format!("{program}-plain"), program) {
            build.flags(["-O0"]).link().run(&[]);
        }
    }
}

#[test]
fn every_allocator_and_lazy_objects() {
    both_ways("placements");
}

#[test]
fn every_header_can_be_the_first() {
    for header in
        ["allocator", "extremes", "family", "float_gauge", "group", "histogram", "lazy", "registry", "static"]
    {
        let Some(build) = Build::c_named(&format!("mode-{header}"), "mode") else { return };
        build.flags(["-include", format!("statctr/{header}.h").as_str()]).link();
    }
}

#[test]
fn invalid_arguments_are_refused() {
    both_ways("errors");
}

#[test]
fn a_heap_without_memory_is_an_error() {
    if sanitized() {
        println!("skipped: sanitizers need more address space");
        return;
    }
    let Some(build) = Build::c("heap") else { return };
    let program = build.link();
    program.run(&["counters"]);
    program.run(&["histograms"]);
}

#[test]
fn code_of_another_abi_is_refused() {
    // this header, as another version of the library would have it
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-abi", std::process::id()));
    let includes = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    std::fs::create_dir_all(folder.join("statctr")).expect("a folder");
    for part in ["", "statctr"] {
        for file in std::fs::read_dir(includes.join(part)).expect("headers").flatten() {
            if let Ok(text) = std::fs::read_to_string(file.path()) {
                let own = format!("#define STATCTR_ABI {}u", statctr_capi::ABI);
                let text = text.replace(&own, "#define STATCTR_ABI 77u");
                std::fs::write(folder.join(part).join(file.file_name()), text).expect("a header");
            }
        }
    }
    let include = format!("-I{}", folder.display());
    for (name, switch, expected) in
        [("other-abi", "-DNO_SWITCH", "refused"), ("other-abi-calls", "-DSTATCTR_NO_INLINE", "works")]
    {
        let Some(mut build) = Build::new(&variable("STATCTR_TEST_CC", "cc"), name, C_STRICT) else { break };
        // before the other folder with headers
        let flags: Vec<String> = build.command.get_args().map(|word| word.to_string_lossy().into()).collect();
        let mut command = Command::new(build.command.get_program());
        command.arg(&include).args(flags).arg(switch).args(C_RELAXED);
        command.arg(sources().join("c/other_abi.c"));
        build.command = command;
        build.link().run(&[expected]);
    }
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn signal_handlers_count_too() {
    both_ways("signals");
}

#[test]
fn statics_and_the_registry() {
    both_ways("statics");
}

#[test]
fn statics_take_no_memory_before_the_first_update() {
    both_ways("statics_unused");
}

#[test]
fn static_extremes_are_those_of_all_threads() {
    both_ways("static_extremes");
}

#[test]
fn families_count_exactly_within_their_bounds() {
    both_ways("families");
}

#[test]
fn the_registry_has_every_kind() {
    both_ways("registry");
}

#[test]
fn forked_children_go_on() {
    both_ways("forks");
}

#[test]
fn short_lived_threads() {
    both_ways("short_threads");
}

#[test]
fn threads_without_registration() {
    both_ways("unregister");
}

#[test]
fn updates_keep_their_place() {
    both_ways("ordering");
    if let Some(build) = Build::c_named("ordering-o3", "ordering") {
        build.flags(["-O3"]).link().run(&[]);
    }
}

#[test]
fn processes_without_rseq() {
    let Some(build) = Build::c("mode") else { return };
    let program = build.link();
    let output = program.command(&[]).arg("1").output().expect("the program starts");
    if output.status.success() {
        let without = |mode| {
            let mut command = program.command(&[]);
            command.arg(mode).env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
            command
        };
        // then the library registers threads, and needs not
        passes(&mut without("1"));
        passes(without("6").env("STATCTR_REGISTER", "0"));
    } else {
        println!("this machine has no rseq to begin with");
        program.run(&["6"]);
    }
}

#[test]
fn copies_of_the_library_share_one_registration() {
    if sanitized() {
        println!("skipped: sanitizers and valgrind do not go together with libraries without them");
        return;
    }
    let Some(build) = Build::c("copies") else { return };
    let program = build.link();
    let Some(build) = Build::c_named("no-copy", "copies") else { return };
    let without_copy = build.flags(["-DNO_COPY", "-ldl"]).compile();
    let folder = program.0.parent().expect("a folder");
    let library = libraries().join("libstatctr_capi.so");
    let copies = ["one.so", "two.so"].map(|name| folder.join(name));
    for copy in &copies {
        std::fs::copy(&library, copy).expect("a copy of the library");
    }
    let registered_by_us = "2"; // STATCTR_REGISTRATION_OWN
    let orders = [
        (&program, &["p 1 2", "1 p 2", "1 2 p", "2 1 p", "1 2", "1 close1 2 p", "p 1 2 close1 close2"][..]),
        (
            &without_copy,
            &["1 2", "2 1", "1 close1 2", "1 2 close1 close2", "load1 2 close1 1", "load1 close1 2 1"],
        ),
    ];
    for (program, orders) in orders {
        for order in orders {
            let mut command = program.command(&[]);
            command.arg(registered_by_us).args(&copies).arg("-").args(words(order));
            command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
            passes(&mut command);
        }
    }
}

#[test]
fn under_valgrind() {
    if sanitized() {
        println!("skipped: sanitizers and valgrind do not go together");
        return;
    }
    if !works("valgrind", "--version") {
        println!("skipped: there is no valgrind");
        return;
    }
    let valgrind = ["valgrind", "-q", "--error-exitcode=9", "--fair-sched=yes"];
    for (name, arguments) in [("mode", &["6"][..]), ("errors", &[])] {
        let Some(build) = Build::c_named(&format!("{name}-valgrind"), name) else { return };
        passes(build.link().command(&valgrind).args(arguments));
    }
}

#[test]
fn a_uniprocessor_build_counts_exactly() {
    let Some(build) = Build::c("one_cpu") else { return };
    let program = build.link();
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    if possible.trim() == "0" {
        program.run(&["works"]);
        return;
    }
    program.run(&["refused"]);
    // a list with one CPU and a thread on one CPU are not enough: the cpuset has more
    let Some(container) = OneCpuContainer::new() else {
        println!("skipped in part: needs root, mount namespaces and cpusets");
        return;
    };
    let pinned = format!("{}exec taskset -c 0 \"$@\"", OneCpuContainer::hide_files(""));
    passes(program.command(&["unshare", "-m", "sh", "-ec", &pinned, "sh"]).arg("refused"));
    // in a container that has one CPU, and shows nothing else, they work
    let inside = format!("echo $$ > {}/cgroup.procs; {}exec \"$@\"", container.0.display(), {
        OneCpuContainer::hide_files("/proc/softirqs /proc/stat")
    });
    let unshare = ["unshare", "-m", "--pid", "--fork", "--mount-proc", "sh", "-ec", &inside, "sh"];
    passes(program.command(&unshare).arg("works"));
}

/// A group of processes that the kernel keeps on CPU 0.
struct OneCpuContainer(PathBuf);

impl OneCpuContainer {
    fn new() -> Option<OneCpuContainer> {
        let [old, new] = ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"].map(Path::new);
        let parent = if old.is_dir() { old } else { new };
        let container = OneCpuContainer(parent.join(format!("statctr-one-cpu-{}", std::process::id())));
        // of the second version only: a group's children have the controller that it passes on
        let _ = std::fs::write(parent.join("cgroup.subtree_control"), "+cpuset");
        let memory = std::fs::read_to_string(parent.join("cpuset.mems")).unwrap_or_default();
        let write = |name: &str, text: &str| std::fs::write(container.0.join(name), text);
        let made = is_root()
            && std::fs::create_dir(&container.0).is_ok()
            && write("cpuset.mems", if memory.trim().is_empty() { "0" } else { memory.trim() }).is_ok()
            && write("cpuset.cpus", "0").is_ok();
        (made && passes_quietly(Command::new("unshare").args(["-m", "--pid", "--fork", "true"])))
            .then_some(container)
    }

    /// Returns shell commands that put a list of one CPU over the kernel's, and the same over
    /// `more` files.
    fn hide_files(more: &str) -> String {
        format!(
            "f=$(mktemp); echo 0 > $f; for name in possible present online; do \
             mount --bind $f /sys/devices/system/cpu/$name; done; for name in {more}; do \
             [ ! -e $name ] || mount --bind $f $name; done; rm $f; "
        )
    }
}

impl Drop for OneCpuContainer {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn passes_quietly(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

#[test]
fn code_that_counts_can_be_unloaded() {
    // the plug-in finds the library's functions in the program, or in the shared library
    let Some(plugin) = Build::c_named("plugin.so", "plugin") else { return };
    let shared = variable("STATCTR_TEST_LINK", "static") == "shared";
    let flags = ["-shared", "-fPIC"];
    let mut plugin = plugin.flags(flags);
    plugin.command.args(words(&variable("STATCTR_TEST_CFLAGS", "")));
    if shared {
        plugin.command.arg("-L").arg(libraries()).arg("-lstatctr_capi");
        plugin.command.arg(format!("-Wl,-rpath,{}", libraries().display()));
    }
    passes(&mut plugin.command);
    let plugin = Program(plugin.target);
    let Some(build) = Build::c("unload") else { return };
    let program = build.flags(["-rdynamic"]).link();
    program.run(&[plugin.0.to_str().expect("a plain path")]);
}

#[test]
fn from_cxx() {
    let compiler = variable("STATCTR_TEST_CXX", "c++");
    for (name, flags) in [
        ("face", &[][..]),
        ("face-small", &["-Os", "-ffunction-sections", "-Wl,--gc-sections"]),
        ("face-o0", &["-O0"]),
    ] {
        let Some(mut build) = Build::new(&compiler, name, CXX_STRICT) else { return };
        for source in ["face.cpp", "elsewhere.cpp"] {
            build.command.arg(sources().join("cpp").join(source));
        }
        build.flags(flags.iter().copied()).link().run(&[]);
    }
}

#[test]
fn classes_of_cxx() {
    let compiler = variable("STATCTR_TEST_CXX", "c++");
    for (name, flags) in
        [("classes", &[][..]), ("classes-calls", &["-DSTATCTR_NO_INLINE"]), ("classes-o0", &["-O0"])]
    {
        let Some(mut build) = Build::new(&compiler, name, CXX_STRICT) else { return };
        build.command.arg(sources().join("cpp").join("classes.cpp"));
        build.flags(flags.iter().copied()).link().run(&[]);
    }
}
