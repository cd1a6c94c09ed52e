//! The emulator that runs a program, and the words that make it trace.

use crate::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The options of the QEMU plugin that writes a trace of a program's memory accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginOptions {
    /// The path of the trace file, which exists and is empty.
    output: PathBuf,
    /// The sampling interval: one of this many accesses is recorded on average, 1 for all.
    every: u64,
    /// The file's size in bytes at which recording ends; a block may go beyond.
    limit: u64,
    /// The file that names the functions of which accesses are recorded; none for all.
    window: Option<PathBuf>,
    /// The file whose first byte says when accesses are recorded; none for the program's start.
    start: Option<PathBuf>,
}

impl PluginOptions {
    /// Creates options that record one of `every` memory accesses on average (1: all) into the existing empty file
    /// `output`, until it has about `limit` bytes.
    pub fn new(output: PathBuf, every: u64, limit: u64) -> Self {
        Self { output, every, limit, window: None, start: None }
    }

    /// Restricts the trace to accesses by the functions that a text file lists, one in a line: offset in its object
    /// file and length, in hexadecimal, then the object's path. `None` records all functions. A line that begins with
    /// `wait` describes a spin loop, which is left out.
    pub fn with_window(self, window: Option<PathBuf>) -> Self {
        Self { window, ..self }
    }

    /// Delays recording until the first byte of a file, which must have one, is not 0: whoever runs the program
    /// writes it to start the trace. `None` records from the program's start.
    pub fn with_start(self, start: Option<PathBuf>) -> Self {
        Self { start, ..self }
    }
}

/// A QEMU command line that runs a program with the tracing plugin loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulatorCommand {
    /// The path or name of the QEMU executable.
    pub(crate) emulator: PathBuf,
    /// The arguments of QEMU: the plugin's options, then the words of the traced command.
    pub(crate) words: Vec<OsString>,
    /// `true` if the command is itself the emulator of a whole machine.
    pub(crate) whole_machine: bool,
}

impl EmulatorCommand {
    /// Returns the QEMU executable to run, as a path or as a name to look up in `PATH`.
    #[inline]
    pub fn emulator(&self) -> &Path {
        &self.emulator
    }

    /// Returns the arguments to pass to QEMU: the plugin's options, then the traced program and its arguments.
    #[inline]
    pub fn words(&self) -> &[OsString] {
        &self.words
    }

    /// Returns `true` if the traced command is itself a QEMU that emulates a whole machine (`qemu-system-…`),
    /// `false` if one program is emulated.
    #[inline]
    pub fn whole_machine(&self) -> bool {
        self.whole_machine
    }
}

/// Builds the QEMU command line that traces `command`. A program runs under user-mode QEMU for its architecture, or
/// under `emulator` if given; to a `qemu-system-…` command the plugin's arguments are added.
///
/// # Errors
/// [`Error::Missing`] if the program or its emulator cannot be found; the text says what to install.
pub fn emulation(
    command: &[OsString],
    emulator: Option<&Path>,
    plugin: &Path,
    options: &PluginOptions,
) -> Result<EmulatorCommand> {
    let [name, rest @ ..] = command else {
        return Err(Error::Missing("there is no command to run".into()));
    };
    let program = find(name).ok_or_else(|| Error::Missing(format!("{}: no such program", name.display())))?;
    let plugin_words = [OsString::from("-plugin"), plugin_argument(plugin, options)];
    let base = program.file_name().unwrap_or_default().as_bytes();
    if base.starts_with(b"qemu-system-") {
        let words = plugin_words.into_iter().chain(rest.iter().cloned()).collect();
        return Ok(EmulatorCommand { emulator: program, words, whole_machine: true });
    }
    let emulator = match emulator {
        Some(path) => path.to_path_buf(),
        None => emulator_for(&program)?,
    };
    // the program's own name is what its first word says
    let called = [OsString::from("-0"), name.clone(), program.into_os_string()];
    let words = plugin_words.into_iter().chain(called).chain(rest.iter().cloned()).collect();
    Ok(EmulatorCommand { emulator, words, whole_machine: false })
}

/// Formats the plugin argument, with commas doubled: QEMU takes two for one.
fn plugin_argument(plugin: &Path, options: &PluginOptions) -> OsString {
    let doubled = |path: &Path| -> Vec<u8> {
        let bytes = path.as_os_str().as_bytes();
        bytes.iter().flat_map(|byte| std::iter::repeat_n(*byte, if *byte == b',' { 2 } else { 1 })).collect()
    };
    let mut word = b"file=".to_vec();
    word.extend(doubled(plugin));
    word.extend(b",out=");
    word.extend(doubled(&options.output));
    word.extend(format!(",every={},limit={}", options.every, options.limit).bytes());
    if let Some(window) = &options.window {
        word.extend(b",window=");
        word.extend(doubled(window));
    }
    if let Some(start) = &options.start {
        word.extend(b",start=");
        word.extend(doubled(start));
    }
    OsString::from_vec(word)
}

/// Finds an executable (the emulator, or a program to trace) by a path, or by its name in the folders of `PATH`;
/// `None` if there is no such file.
pub fn find(name: &OsStr) -> Option<PathBuf> {
    let path = Path::new(name);
    if name.as_bytes().contains(&b'/') {
        return path.is_file().then(|| path.to_path_buf());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(path)).find(|place| place.is_file())
}

/// Returns the emulator for an ELF program's machine, which must be on the PATH.
fn emulator_for(program: &Path) -> Result<PathBuf> {
    let mut head = [0; 20];
    let read = File::open(program).and_then(|mut file| file.read_exact(&mut head));
    let machine = read.ok().and_then(|()| machine_of(&head)).ok_or_else(|| {
        Error::Missing(format!(
            "{}: not an ELF program for a machine that can be traced (x86-64, aarch64); \
             a script is traced as its interpreter with the script as its first word",
            program.display()
        ))
    })?;
    let emulator = format!("qemu-{machine}");
    find(OsStr::new(&emulator)).ok_or_else(|| {
        Error::Missing(format!("{emulator} is not installed: it is in Debian's package qemu-user"))
    })
}

/// Returns the machine of an ELF header as QEMU names it.
fn machine_of(head: &[u8; 20]) -> Option<&'static str> {
    const LITTLE_64: [u8; 2] = [2, 1];
    if head[..4] != *b"\x7fELF" || head[4..6] != LITTLE_64 {
        return None;
    }
    match u16::from_le_bytes([head[18], head[19]]) {
        62 => Some("x86_64"),
        183 => Some("aarch64"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> PluginOptions {
        PluginOptions { output: "a,b/out".into(), every: 3, limit: 1000, window: None, start: None }
    }

    #[test]
    fn commas_in_paths_are_doubled() {
        let argument = plugin_argument(Path::new("p,lugin.so"), &options());
        assert_eq!(argument, "file=p,,lugin.so,out=a,,b/out,every=3,limit=1000");
        let windowed = PluginOptions { window: Some("w,x".into()), ..options() };
        let argument = plugin_argument(Path::new("p"), &windowed);
        assert_eq!(argument, "file=p,out=a,,b/out,every=3,limit=1000,window=w,,x");
        let argument = plugin_argument(Path::new("p"), &options().with_start(Some("s".into())));
        assert_eq!(argument, "file=p,out=a,,b/out,every=3,limit=1000,start=s");
    }

    #[test]
    fn a_script_is_no_program_for_the_emulator() {
        let words = ["/proc/self/cmdline".into()];
        let error = emulation(&words, None, Path::new("p.so"), &options()).expect_err("not ELF");
        assert!(error.to_string().contains("not an ELF program"), "{error}");
        let missing = ["/no/such/program".into()];
        let error = emulation(&missing, None, Path::new("p.so"), &options()).expect_err("not there");
        assert!(error.to_string().contains("no such program"), "{error}");
    }

    #[test]
    fn a_programs_words_come_behind_those_of_the_emulator() {
        let words = ["/proc/self/exe".into(), "-x".into()];
        let run = emulation(&words, Some(Path::new("qemu")), Path::new("p.so"), &options()).expect("runs");
        assert!(!run.whole_machine);
        assert_eq!(run.words[2..], ["-0", "/proc/self/exe", "/proc/self/exe", "-x"].map(OsString::from));
    }

    #[test]
    fn machines_are_told_by_the_elf_header() {
        let mut head = [0; 20];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[18] = 62;
        assert_eq!(machine_of(&head), Some("x86_64"));
        head[18] = 183;
        assert_eq!(machine_of(&head), Some("aarch64"));
        head[5] = 2;
        assert_eq!(machine_of(&head), None, "the other byte order");
    }
}
