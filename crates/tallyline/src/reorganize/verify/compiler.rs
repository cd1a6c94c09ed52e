//! Detection of the C compiler and of its target machine.

use std::process::{Command, Stdio};
use tallyline_debuginfo::model::Types;

/// Machines by ELF's number, with the macro that compilers define for them. What is more special
/// comes first.
const MACHINES: [(u16, &str); 16] = [
    (62, "__x86_64__"),
    (3, "__i386__"),
    (183, "__aarch64__"),
    (40, "__arm__"),
    (243, "__riscv"),
    (22, "__s390__"),
    (21, "__powerpc64__"),
    (20, "__powerpc__"),
    (8, "__mips__"),
    (258, "__loongarch__"),
    (43, "__sparc_v9__"),
    (2, "__sparc__"),
    (4, "__m68k__"),
    (42, "__sh__"),
    (83, "__AVR__"),
    (105, "__MSP430__"),
];

/// A compiler that compiles for the types' machine.
#[derive(Debug)]
pub(super) struct Compiler {
    words: Vec<String>,
    flag: Option<&'static str>,
    /// The compiler's name and version, such as `gcc 14.2.0`.
    pub(super) version: String,
    is_clang: bool,
}

impl Compiler {
    /// Returns the named compiler, else `$CC`, else `cc`; an error is the reason why it cannot be used for these types.
    pub(super) fn find(named: Option<&str>, types: &Types) -> Result<Compiler, String> {
        let from_environment = std::env::var("CC").ok().filter(|cc| !cc.trim().is_empty());
        let text = named.map(str::to_string).or(from_environment).unwrap_or_else(|| "cc".into());
        let words: Vec<String> = text.split_whitespace().map(str::to_string).collect();
        // one that compiles for several machines is asked for each
        let mut other = None;
        for flag in [None, Some("-m32"), Some("-mx32"), Some("-m64"), Some("-mbig-endian")] {
            let mut compiler =
                Compiler { words: words.clone(), flag, version: String::new(), is_clang: false };
            let Some(macros) = compiler.macros() else { continue };
            compiler.version = macros.version().ok_or_else(|| format!("{text} is no known C compiler"))?;
            compiler.is_clang = macros.has("__clang__");
            match macros.mismatch(types) {
                None => return Ok(compiler),
                Some(why) => other = other.or(Some(why)),
            }
        }
        Err(match other {
            Some(why) => format!("{text} compiles {why}: name a compiler with --cc"),
            None => format!("{text} cannot be run: name a C compiler with --cc"),
        })
    }

    /// Returns the compiler with what every call of it needs.
    pub(super) fn command(&self) -> Command {
        let (program, words) = self.words.split_first().map_or(("cc", &[][..]), |(p, w)| (p.as_str(), w));
        let mut command = Command::new(program);
        command.args(words).args(self.flag).stdin(Stdio::null()).env("LC_ALL", "C");
        command
    }

    /// Returns the arguments for sources of ours.
    pub(super) fn arguments(&self) -> Vec<&'static str> {
        let mut arguments = vec!["-std=gnu11", "-w", "-O0", "-fdiagnostics-color=never"];
        arguments.extend(if self.is_clang {
            // types that are only pointed to are described too
            ["-ferror-limit=0", "-fstandalone-debug"]
        } else {
            ["-fmax-errors=0", "-fno-eliminate-unused-debug-types"]
        });
        arguments
    }

    fn macros(&self) -> Option<Macros> {
        let output = self.command().args(["-dM", "-E", "-x", "c", "/dev/null"]).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success() && text.contains("#define")).then_some(Macros(text))
    }
}

/// A compiler's predefined macros.
struct Macros(String);

impl Macros {
    fn value(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| {
            let rest = line.strip_prefix("#define ")?.strip_prefix(name)?;
            rest.is_empty().then_some("").or_else(|| rest.strip_prefix(' '))
        })
    }

    fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    fn version(&self) -> Option<String> {
        let (name, parts) = if self.has("__clang__") {
            ("clang", ["__clang_major__", "__clang_minor__", "__clang_patchlevel__"])
        } else {
            ("gcc", ["__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__"])
        };
        let parts: Option<Vec<&str>> = parts.iter().map(|part| self.value(part)).collect();
        Some(format!("{name} {}", parts?.join(".")))
    }

    /// Describes the compiler's target, if it is not the machine of the types.
    fn mismatch(&self, types: &Types) -> Option<String> {
        let machine = MACHINES.iter().find(|(_, name)| self.has(name));
        let pointer = self.value("__SIZEOF_POINTER__").and_then(|size| size.parse::<u64>().ok());
        let big = self.value("__BYTE_ORDER__") == Some("__ORDER_BIG_ENDIAN__");
        let target = types.target();
        // BTF alone does not say for which machine it is
        let known = target.machine != 0;
        let of = |(_, name): &(u16, &str)| name.trim_matches('_').to_string();
        if known && machine.is_none_or(|(number, _)| *number != target.machine) {
            let wanted = MACHINES.iter().find(|(number, _)| *number == target.machine).map(of);
            let wanted = wanted.unwrap_or_else(|| format!("machine {}", target.machine));
            return Some(format!("for {}, not for {wanted}", machine.map_or("another machine".into(), of)));
        }
        if pointer != Some(types.pointer_size()) {
            return Some(format!("for pointers of another size than {}", types.pointer_size()));
        }
        (known && big != target.big_endian).then(|| "for the other byte order".to_string())
    }
}
