//! pahole's command line in front of `tallyline layout`: as `tallyline pahole …`, or where this
//! program is called `pahole`. Options, abbreviations, messages and exit codes are pahole's, so that
//! scripts go on working; what is not done here the next `pahole` on the PATH does.

mod argp;
mod help;
mod key;
mod options;
mod pass_on;
mod prototype;
mod reorganize;
mod vmlinux;

use crate::layout::filter::languages;
use crate::layout::job::{Ask, Job, KERNEL, Show};
use crate::layout::operands::opens_as_types;
use crate::layout::select::Names;
use crate::layout::show;
use argp::{Given, Parsed};
use key::Key;
use options::OPTIONS;
use prototype::Prototype;
use reorganize::Smaller;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tallyline_debuginfo::Format;
use tallyline_support::output::is_broken_pipe;

/// The exit status for a command line that cannot be understood, of `argp`.
const USAGE: u8 = 64;

/// The error message, in pahole's words, for a running kernel whose types are not found.
const NO_VMLINUX: &str = "couldn't find a vmlinux that matches the running kernel
HINT: Maybe you're inside a container or missing a debuginfo package?";

/// An error of a run as pahole: an invalid command line, or any other.
enum Failure {
    /// An invalid option, with the message.
    Usage(String),
    /// Any other error, with the message.
    Error(String),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Error(format!("{error:#}"))
    }
}

/// Returns `true` if this program was started by the name `pahole`, and should act as pahole.
pub(crate) fn is_called(program: &OsString) -> bool {
    Path::new(program).file_name() == Some("pahole".as_ref())
}

/// Runs `tallyline` as a replacement of pahole, with pahole's options and output.
pub(crate) fn run(words: &[OsString]) -> ExitCode {
    match try_run(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Error(message)) => {
            eprintln!("pahole: {message}");
            ExitCode::FAILURE
        }
        Err(Failure::Usage(message)) => {
            eprintln!("pahole: {message}\nTry `pahole --help' or `pahole --usage' for more information.");
            ExitCode::from(USAGE)
        }
    }
}

fn try_run(words: &[OsString]) -> Result<(), Failure> {
    let texts: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let Parsed { options, operands } = argp::parse(OPTIONS, &texts).map_err(Failure::Usage)?;
    if let Some((given, does)) = options.iter().find_map(elsewhere) {
        return match pass_on::pass_on(given.name, does, words) {
            Ok(never) => match never {},
            Err(message) => Err(Failure::Error(message)),
        };
    }
    for given in &options {
        let text = match given.key {
            Key::Help => help::help(),
            Key::Usage => help::usage(),
            Key::Version => format!("{}\n", help::VERSION),
            Key::NumericVersion => format!("{}\n", help::NUMERIC_VERSION),
            Key::RunningVmlinux => match vmlinux::running() {
                Some(path) => format!("{}\n", path.display()),
                None => return Err(Failure::Error(NO_VMLINUX.into())),
            },
            _ => continue,
        };
        return written(|out| Ok(out.write_all(text.as_bytes())?));
    }
    show_all(&line(&options, operands)?)
}

/// Returns the first option that another program has to handle.
fn elsewhere(given: &Given) -> Option<(&Given, &'static str)> {
    match given.key {
        Key::Elsewhere(does) => Some((given, does)),
        _ => None,
    }
}

/// A parsed command line.
struct Line {
    job: Job,
    smaller: Option<Smaller>,
    /// An operand that is the name of a file, but is taken for that of a type.
    mistaken: Option<String>,
    prototypes: Vec<Prototype>,
}

fn show_all(line: &Line) -> Result<(), Failure> {
    let Line { job, smaller, mistaken, prototypes } = line;
    if let (None, Some(file)) = (smaller, job.in_parts()) {
        let mut read = Ok(());
        written(|out| {
            read = show::show_parts(job, file, out)?;
            Ok(())
        })?;
        return read.or_else(|error| unread(job, &error));
    }
    let mut types = match job.read() {
        Ok(types) => types,
        Err(error) => return unread(job, &error),
    };
    prototype::check(prototypes, &types).map_err(Failure::Error)?;
    let mut missing = None;
    written(|out| {
        missing = match smaller {
            Some(smaller) => reorganize::show(job, *smaller, &mut types, out)?,
            None => show::show(job, &types, out)?.first().map(|name| name.to_string()),
        };
        Ok(())
    })?;
    match (missing, mistaken) {
        (Some(_), Some(file)) => Err(Failure::Error(no_types(file, "supported"))),
        (Some(name), None) => {
            // no failure in pahole's eyes
            eprintln!("pahole: type '{name}' not found");
            Ok(())
        }
        (None, _) => Ok(()),
    }
}

/// Reports a file that cannot be read. To pahole it is no failure if the types are in another file.
fn unread(job: &Job, error: &anyhow::Error) -> Result<(), Failure> {
    use tallyline_debuginfo::Error::Companion;
    if !matches!(error.downcast_ref(), Some(Companion(_))) {
        return Err(Failure::Error(cannot_read(job, error)));
    }
    let text = format!("{error:#}");
    let of_dwz = if text.contains("dwz") { "could not resolve dwz alternate debug file: " } else { "" };
    eprintln!("pahole: WARNING: {of_dwz}{text}");
    Ok(())
}

/// Returns the message for files that cannot be read, in pahole's words if they have no types.
fn cannot_read(job: &Job, error: &anyhow::Error) -> String {
    use tallyline_debuginfo::Error::{NoDebugFile, NoSuchFormat, NoTypes, UnknownFormat};
    match (error.downcast_ref(), job.files.as_slice()) {
        // which pahole reads
        (Some(UnknownFormat), files) if let Some(file) = files.iter().find(|file| is_archive(file)) => {
            format!("file '{}' is an archive: name one of its members, extracted (ar x)", file.display())
        }
        (Some(NoDebugFile(_) | NoTypes | NoSuchFormat(_) | UnknownFormat), [file, ..]) => {
            let wanted = match job.formats.as_slice() {
                [Format::Btf] => "btf",
                [Format::Dwarf] => "dwarf",
                _ => "supported",
            };
            no_types(&file.display().to_string(), wanted)
        }
        _ => format!("{error:#}"),
    }
}

fn is_archive(file: &Path) -> bool {
    let mut start = [0; 8];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && matches!(&start, b"!<arch>\n" | b"!<thin>\n")
}

fn no_types(file: &str, wanted: &str) -> String {
    format!("file '{file}' has no {wanted} type information.")
}

fn written(write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let done = write(&mut out).and_then(|()| Ok(out.flush()?));
    match done {
        Err(error) if !is_broken_pipe(&error) => Err(error.into()),
        _ => Ok(()),
    }
}

fn line(options: &[Given], operands: Vec<String>) -> Result<Line, Failure> {
    let mut building = Building::default();
    options.iter().try_for_each(|given| building.option(given))?;
    let mistaken = building.operands(operands)?;
    let smaller = building.smaller();
    let prototypes = std::mem::take(&mut building.prototypes);
    Ok(Line { job: building.finish()?, smaller, mistaken, prototypes })
}

/// A job while the options are gone through.
#[derive(Default)]
struct Building {
    job: Job,
    // of -C, -i and -f the last counts
    class: Option<String>,
    prototypes: Vec<Prototype>,
    relation: Option<Key>,
    enumerator: Option<String>,
    columns: Option<Show>,
    verbose: bool,
    recursive: bool,
    compile: bool,
    positions: bool,
    packable: bool,
    reorganize: bool,
    steps: bool,
}

impl Building {
    fn option(&mut self, given: &Given) -> Result<(), Failure> {
        let value = &given.value;
        if self.style_option(given.key) || self.filter_option(given.key, value)? {
            return Ok(());
        }
        match given.key {
            Key::AnonInclude => self.job.anonymous = true,
            Key::NestedAnonInclude => self.job.nested_anonymous = true,
            Key::BtfBase => self.job.btf_base = Some(value.into()),
            Key::ClassName => {
                let (list, prototypes) = prototype::take(value).map_err(Failure::Error)?;
                (self.class, self.prototypes) = (Some(list), prototypes);
            }
            Key::Contains | Key::FindPointersTo => {
                self.class = Some(value.clone());
                self.relation = Some(given.key);
            }
            Key::ContainsEnumerator => self.enumerator = Some(value.clone()),
            Key::Compile => self.compile = true,
            Key::DefinedIn => self.columns = Some(Show::Unit),
            Key::Fixup => self.job.widen_bitfields = true,
            Key::FormatPath => self.formats(value)?,
            Key::NameLength => self.columns = Some(Show::NameLength),
            Key::NrDefinitions => self.columns = Some(Show::Definitions),
            Key::NrMembers => self.columns = Some(Show::Members),
            Key::Sizes => self.columns = Some(Show::Sizes),
            Key::Packable => self.packable = true,
            Key::Positions => self.positions = true,
            Key::Reorganize => self.reorganize = true,
            Key::Steps => self.steps = true,
            Key::Private => {
                self.job.inner = true;
                self.job.style.only_data = true;
            }
            Key::Recursive => self.recursive = true,
            Key::Separator => self.job.separator = value.chars().next().unwrap_or('\0'),
            Key::SkipMissing => self.job.skip_missing = true,
            Key::Sort => self.job.sort = true,
            Key::Verbose => self.verbose = true,
            _ => {}
        }
        Ok(())
    }

    fn style_option(&mut self, key: Key) -> bool {
        let style = &mut self.job.style;
        match key {
            Key::ExpandPointers => style.expand_pointers = true,
            Key::ExpandTypes => style.expand_types = true,
            Key::Hex => style.hex = true,
            Key::SkipAtomic => style.atomic_typedefs = false,
            Key::FlatArrays => style.flat_arrays = true,
            Key::RelativeOffsets => style.relative_offsets = true,
            Key::FirstBiggest => style.first_biggest = true,
            Key::OnlyData => style.only_data = true,
            Key::ClassesAsStructs => style.classes_as_structs = true,
            Key::SuppressAligned => style.aligned = false,
            Key::SuppressPacked => style.packed = false,
            Key::SuppressForcePadding => style.force_padding = false,
            Key::Quiet => *style = style.clone().quiet(),
            _ => return false,
        }
        true
    }

    fn filter_option(&mut self, key: Key, value: &str) -> Result<bool, Failure> {
        let filter = &mut self.job.filter;
        let bytes = || Some(value.as_bytes().to_vec());
        match key {
            Key::BitHoles => filter.bit_holes = number(value) as u32,
            Key::Holes => filter.holes = number(value) as u32,
            Key::HoleSize => filter.hole_size = number(value),
            Key::Padding => filter.padding = number(value),
            Key::PaddingAtLeast => filter.padding_at_least = number(value),
            Key::CachelineSize => {
                self.job.style.cacheline = if number(value) == 0 { 64 } else { number(value) };
            }
            Key::Prefix => filter.prefix = bytes(),
            Key::Exclude => filter.exclude = bytes(),
            Key::DeclExclude => filter.declared_exclude = bytes(),
            Key::CuExclude => self.job.units.exclude = bytes(),
            Key::Lang => self.job.units.languages = languages(value)?,
            Key::LangExclude => self.job.units.not_languages = languages(value)?,
            Key::Structs => filter.structs = true,
            Key::Unions => filter.unions = true,
            Key::Packed => (filter.structs, filter.packed) = (true, true),
            Key::WithFlexibleArray => filter.flexible = true,
            Key::WithEmbeddedFlexibleArray => filter.embedded_flexible = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Formats with commas between; what is not known here is in no file.
    fn formats(&mut self, list: &str) -> Result<(), Failure> {
        self.job.formats = list
            .split(',')
            .filter_map(|name| match name {
                "dwarf" => Some(Format::Dwarf),
                "btf" => Some(Format::Btf),
                _ => None,
            })
            .collect();
        match self.job.formats.is_empty() {
            true => {
                Err(Failure::Error(format!("no file has {list} type information: there are dwarf and btf")))
            }
            false => Ok(()),
        }
    }

    /// Returns the files; the only operand may be the name of a type instead. An operand that is such a name
    /// and also that of a file without types is returned.
    fn operands(&mut self, mut operands: Vec<String>) -> Result<Option<String>, Failure> {
        let asks = self.class.is_some() || self.enumerator.is_some();
        if let [types @ .., last] = operands.as_slice()
            && !asks
            && !types.is_empty()
            && !types.iter().any(|word| is_file(word))
        {
            // as in `tallyline layout`: the types, then the file
            self.class = Some(types.join(","));
            operands = vec![last.clone()];
        }
        match operands.as_slice() {
            [] => self.job.files = vec![KERNEL.into()],
            [name] if !asks && self.class.is_none() && !is_file(name) => {
                self.class = Some(name.clone());
                self.job.files = vec![KERNEL.into()];
                return Ok(PathBuf::from(name).exists().then(|| name.clone()));
            }
            _ => self.job.files = operands.iter().map(PathBuf::from).collect(),
        }
        Ok(None)
    }

    /// Returns the settings of `-R`, which reorganises only the types that `-C` names.
    fn smaller(&self) -> Option<Smaller> {
        let is_class = self.class.is_some() && self.relation.is_none();
        match (self.class.is_some(), self.packable) {
            (false, true) if !self.verbose => Some(Smaller::Packable),
            _ if is_class && self.reorganize => Some(Smaller::Reorganized { steps: self.steps }),
            _ => None,
        }
    }

    fn finish(mut self) -> Result<Job, Failure> {
        if self.job.units.not_languages.is_empty()
            && self.job.units.languages.is_empty()
            && let Ok(list) = std::env::var("PAHOLE_LANG_EXCLUDE")
        {
            self.job.units.not_languages = languages(&list)?;
        }
        let mut names = Names::default();
        self.job.ask = match (self.enumerator, self.class, self.relation) {
            (Some(name), ..) => Ask::Enumerator(name),
            (_, Some(name), Some(Key::Contains)) => {
                Ask::Containers { name, recursive: self.recursive, counted: self.verbose }
            }
            (_, Some(name), Some(_)) => Ask::PointersTo(name),
            (_, list, None) | (_, list @ None, _) => {
                list.iter().try_for_each(|list| names.add_exact_list(list))?;
                Ask::Types(names)
            }
        };
        self.job.show = match self.columns {
            Some(columns) => columns,
            None if self.compile => Show::Compilable,
            None if self.job.filter.hole_size != 0 && !self.verbose => Show::Name,
            None => Show::Definition,
        };
        self.job.positions = self.positions;
        if self.job.btf_base.is_some() {
            self.job.formats = vec![Format::Btf];
        }
        // the first name that is missing ends it
        self.job.stop_at_missing = !self.job.skip_missing;
        Ok(self.job)
    }
}

/// Returns `true` if an operand is a file rather than the name of a type.
fn is_file(operand: &str) -> bool {
    operand.contains('/') && PathBuf::from(operand).exists() || opens_as_types(operand)
}

/// Returns a number as C's `atoi` reads it.
fn number(text: &str) -> u64 {
    let digits: String = text.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}
