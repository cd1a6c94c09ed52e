//! Opening events: as asked for, and where the kernel does not know or permit that, as close to it
//! as it does.

use super::events::parse;
use super::os::{self, Ring};
use super::request::EventRequest;
use super::rings::Rings;
use super::spe;
use super::sysfs::{Pmus, cpu_list, text};
use super::{CallChains, RecordError, RecordOptions, SampledCode, SamplingRate, Target, synthesize};
use crate::abi::{attr_flag, branch, read_format, sample as bit};
use crate::attr::Attr;
use crate::names::{BREAKPOINT, CACHE, HARDWARE, RAW, SOFTWARE, TRACEPOINT};
use crate::sample::{aarch64, x86_64};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

/// An event that is open.
#[derive(Debug)]
pub(super) struct OpenEvent {
    pub(super) request: EventRequest,
    pub(super) attr: Attr,
    pub(super) ids: Vec<u64>,
    /// The descriptors of an event that leads a group, or is in none: they are enabled and disabled by themselves.
    pub(super) leaders: Vec<OwnedFd>,
    /// The descriptors of an event that is enabled and disabled with the leader of its group.
    members: Vec<OwnedFd>,
    /// `true` if the event is there only for the records about threads and mappings.
    pub(super) is_dummy: bool,
}

impl OpenEvent {
    pub(super) fn descriptors(&self) -> impl Iterator<Item = &OwnedFd> {
        self.leaders.iter().chain(&self.members)
    }

    pub(super) fn summary(&self) -> (String, &'static str) {
        let excludes = |flag: u64| self.attr.flags & flag != 0;
        let scope = match (excludes(attr_flag::EXCLUDE_USER), excludes(attr_flag::EXCLUDE_KERNEL)) {
            (false, true) => "programs only",
            (true, false) => "the kernel only",
            _ => "programs and the kernel",
        };
        (self.request.name.clone(), scope)
    }
}

/// Everything that is open.
pub(super) struct OpenedEvents {
    pub(super) events: Vec<OpenEvent>,
    pub(super) rings: Rings,
    pub(super) notes: Vec<String>,
}

/// Returns the event that carries the records about threads and mappings: the last if there is one for that
/// only, else the first.
pub(super) fn tracking(events: &[OpenEvent]) -> usize {
    events.iter().position(|event| event.is_dummy).unwrap_or(0)
}

pub(super) fn open(options: &RecordOptions, child: Option<i32>) -> Result<OpenedEvents, RecordError> {
    let mut notes = Vec::new();
    let threads = threads(options, child, &mut notes)?;
    let cpus =
        text(Path::new("/sys/devices/system/cpu/online")).map_or_else(|| vec![0], |list| cpu_list(&list));
    let mut requests = options.events.clone();
    if requests.is_empty() {
        requests = default_events(&mut notes);
    }
    let mut events: Vec<_> = requests.into_iter().map(|request| new_event(request, options)).collect();
    // the first event is not on all CPUs: threads and mappings would be missed on the others; and of traces the
    // hardware stops now and then
    // while samples wait for their time, threads and mappings do not
    if events.iter().all(|event| event.request.cpus.is_some())
        || events.iter().any(|event| event.request.writes_packets)
        || !options.delay.is_zero()
    {
        events.push(dummy(events.len()));
    }
    complete(&mut events, options);
    clamp_frequency(&mut events, &mut notes);
    settle(&mut events, options, threads[0], &cpus, &mut notes)?;
    os::raise_file_limit();
    let rings = open_everywhere(&mut events, options, &threads, &cpus)?;
    notes.extend(rings.packets_note());
    Ok(OpenedEvents { events, rings, notes })
}

/// Returns the threads to open events for; −1 for all.
fn threads(
    options: &RecordOptions,
    child: Option<i32>,
    notes: &mut Vec<String>,
) -> Result<Vec<i32>, RecordError> {
    match (&options.target, child) {
        (Target::Command, Some(child)) => Ok(vec![child]),
        (Target::Processes(pids), _) => {
            let mut threads = Vec::new();
            let all = synthesize::pids(&options.target, options.inherit);
            for pid in &all {
                let found = synthesize::threads(*pid);
                // a child may have ended meanwhile
                if found.is_empty() && pids.contains(pid) {
                    return Err(RecordError::NoProcess(*pid));
                }
                threads.extend(found);
            }
            let children: Vec<_> = all.iter().filter(|pid| !pids.contains(pid)).map(i32::to_string).collect();
            if !children.is_empty() {
                notes.push(format!("with children that run already: {}", children.join(", ")));
            }
            Ok(threads)
        }
        (Target::Threads(threads), _) => {
            let is_gone = |thread: &&i32| !Path::new(&format!("/proc/{thread}")).exists();
            threads
                .iter()
                .find(is_gone)
                .map_or_else(|| Ok(threads.clone()), |gone| Err(RecordError::NoThread(*gone)))
        }
        _ => Ok(vec![-1]),
    }
}

/// Cycles where the machine counts them, else the clock.
fn default_events(notes: &mut Vec<String>) -> Vec<EventRequest> {
    let named = |name: &str| parse(&[name.to_owned()], &Pmus::default()).unwrap_or_default();
    let cycles = named("cycles:P");
    let counts = cycles.first().is_some_and(|event| {
        let attr = Attr { flags: attr_flag::DISABLED | attr_flag::EXCLUDE_KERNEL, ..event.attr.clone() };
        let found = os::open_event(&attr, 0, -1, None);
        // what is forbidden is there
        !matches!(
            found.map_err(|error| error.raw_os_error()),
            Err(Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV))
        )
    });
    if counts {
        return cycles;
    }
    notes.push("no hardware counters here: sampling the clock".to_owned());
    named("cpu-clock")
}

/// Opens events for the calling thread that count up to a sample and then write nothing.
pub(super) fn without_records(requests: &[EventRequest], frequency: u64) -> io::Result<Vec<OwnedFd>> {
    let requests = if requests.is_empty() { default_events(&mut Vec::new()) } else { requests.to_vec() };
    let open = |request: EventRequest| {
        let mut attr = request.attr;
        if !request.has_period {
            attr.sample_period = frequency;
            attr.flags |= attr_flag::FREQ;
        }
        os::open_event(&attr, 0, -1, None).or_else(|_| {
            attr.flags |= attr_flag::EXCLUDE_KERNEL | attr_flag::EXCLUDE_HV;
            os::open_event(&attr, 0, -1, None)
        })
    };
    requests.into_iter().map(open).collect()
}

fn new_event(request: EventRequest, options: &RecordOptions) -> OpenEvent {
    let mut attr = request.attr.clone();
    match options.rate {
        SamplingRate::Period(period) if !request.has_period => attr.sample_period = period,
        // each hit of a tracepoint or breakpoint, unless it is said how many
        SamplingRate::Period(period) if matches!(request.attr.kind, TRACEPOINT | BREAKPOINT) => {
            attr.sample_period = period;
        }
        SamplingRate::Frequency(frequency) if !request.has_period => {
            attr.sample_period = frequency;
            attr.flags |= attr_flag::FREQ;
        }
        _ => {}
    }
    if !request.has_scope {
        attr.flags |= match options.scope {
            SampledCode::Permitted => 0,
            SampledCode::User => attr_flag::EXCLUDE_KERNEL | attr_flag::EXCLUDE_HV,
            SampledCode::Kernel => attr_flag::EXCLUDE_USER,
        };
    }
    if request.most_precise {
        attr.flags |= 3 << attr_flag::PRECISE_SHIFT;
    }
    OpenEvent { request, attr, ids: Vec::new(), leaders: Vec::new(), members: Vec::new(), is_dummy: false }
}

fn dummy(index: usize) -> OpenEvent {
    let events = parse(&["dummy:u".to_owned()], &Pmus::default()).unwrap_or_default();
    let mut request =
        events.into_iter().next().unwrap_or_else(|| unreachable!("a name that is in the table"));
    request.leader = index;
    let mut attr = request.attr.clone();
    attr.sample_period = 1;
    OpenEvent { request, attr, ids: Vec::new(), leaders: Vec::new(), members: Vec::new(), is_dummy: true }
}

/// Sets the fields of samples, and the event that reports threads and mappings. Every record has its event's id at the
/// same position (`PERF_SAMPLE_IDENTIFIER`), as the fields of events differ by their period and return address.
fn complete(events: &mut [OpenEvent], options: &RecordOptions) {
    let mut fields = bit::IDENTIFIER | bit::IP | bit::TID | bit::TIME | bit::ADDR | bit::CPU | bit::PERIOD;
    let (mut callers, mut branches, mut stack) = (0, 0, 0);
    match options.call_chains {
        CallChains::None => {}
        CallChains::FramePointers => fields |= bit::CALLCHAIN,
        CallChains::UserStack(size) => {
            // the kernel's part of the chain comes from the kernel, that of the program from its stack
            fields |= bit::CALLCHAIN | bit::STACK_USER;
            (callers, stack) = (attr_flag::EXCLUDE_CALLCHAIN_USER, size);
        }
        CallChains::LastBranches => {
            fields |= bit::CALLCHAIN | bit::BRANCH_STACK;
            branches = branch::USER | branch::CALL_STACK | branch::NO_FLAGS | branch::NO_CYCLES;
        }
    }
    if events.iter().any(|event| event.attr.kind == TRACEPOINT) {
        fields |= bit::RAW;
    }
    let registers = user_registers();
    if registers != 0 {
        fields |= bit::REGS_USER;
    }
    if events.iter().any(|event| event.request.is_memory) {
        fields |= bit::DATA_SRC | bit::WEIGHT_STRUCT;
    }
    // so perf knows that packets have physical addresses
    if events
        .iter()
        .any(|event| event.request.writes_packets && spe::has_physical(&event.attr, &Pmus::default()))
    {
        fields |= bit::PHYS_ADDR;
    }
    let tracking = tracking(events);
    let has_packets = events.iter().any(|event| event.request.writes_packets);
    let starts_command = options.target == Target::Command;
    let is_delayed = !options.delay.is_zero();
    // perf looks for the frame tables of a program in the mapping of its data, too
    let unwinds = matches!(options.call_chains, CallChains::UserStack(_));
    let wants_data = options.data_mappings || unwinds || events.iter().any(|event| event.request.is_memory);
    for (index, event) in events.iter_mut().enumerate() {
        let omitted = if ignores_period(event) { bit::PERIOD } else { 0 };
        let attr = &mut event.attr;
        attr.sample_type = fields & !omitted;
        attr.sample_regs_user = registers;
        attr.sample_stack_user = stack;
        add_return_address(attr, options);
        attr.branch_sample_type = branches;
        attr.flags |= callers;
        attr.read_format = read_format::ID | read_format::LOST;
        attr.flags |= attr_flag::SAMPLE_ID_ALL | attr_flag::WATERMARK | attr_flag::EXCLUDE_GUEST;
        attr.wakeup_events = u32::try_from(options.ring_pages * os::page_size() / 2).unwrap_or(1 << 18);
        if options.target != Target::System && options.inherit {
            attr.flags |= attr_flag::INHERIT;
        }
        // the members of a group start with its leader
        if event.request.leader == index {
            let starts = starts_command && (!is_delayed || event.is_dummy);
            attr.flags |= attr_flag::DISABLED | if starts { attr_flag::ENABLE_ON_EXEC } else { 0 };
        }
        if index == tracking {
            attr.flags |= attr_flag::MMAP
                | attr_flag::MMAP2
                | if wants_data { attr_flag::MMAP_DATA } else { 0 }
                | attr_flag::KSYMBOL
                | attr_flag::BPF_EVENT
                | attr_flag::COMM
                | attr_flag::COMM_EXEC
                | attr_flag::TASK
                | attr_flag::BUILD_ID;
            // packets need not say whose they are
            attr.flags |= if has_packets { attr_flag::CONTEXT_SWITCH } else { 0 };
        }
    }
}

/// Returns `true` if the kernel would take a sample at each event, whatever the fixed period, where samples have their
/// period: `perf_swevent_event` passes it on as that of the event then. Readers know it from the attributes.
fn ignores_period(event: &OpenEvent) -> bool {
    let attr = &event.attr;
    let is_counted = match attr.kind {
        // timers, which have no such rule
        SOFTWARE => !CLOCKS.contains(&attr.config),
        HARDWARE | CACHE | RAW => false,
        // breakpoints, tracepoints, and probes, which are PMUs of their own as some hardware is
        _ => !event.request.writes_packets,
    };
    is_counted && !attr.is_frequency() && attr.sample_period > 1
}

/// The software events that are timers: `cpu-clock` and `task-clock`.
const CLOCKS: [u64; 2] = [0, 1];

/// The bytes of the stack that hold the return address at a function's first instruction.
const WORD: u32 = 8;

/// Adds the word on top of the stack to the samples of an event of which it tells more. It is not among the fields by
/// which records of different events are told apart. On aarch64 the registers have the return address.
///
/// An event with call chains does without: of a sample that has registers and a piece of the stack, `perf script`
/// unwinds what it can and appends it to the chain, so that the innermost function stood in it twice.
fn add_return_address(attr: &mut Attr, options: &RecordOptions) {
    let has_callers = attr.sample_type & (bit::STACK_USER | bit::CALLCHAIN) != 0;
    if options.return_addresses && !has_callers && cfg!(target_arch = "x86_64") && is_imprecise_time(attr) {
        attr.sample_type |= bit::STACK_USER;
        attr.sample_stack_user = WORD;
    }
}

/// Returns `true` if an event samples where programs spend time, and is not precise: then samples lie behind what
/// stalled, and behind a call in another function.
fn is_imprecise_time(attr: &Attr) -> bool {
    const CYCLES: [u64; 2] = [0, 9];
    // the upper half of an event's number says on which kind of core it is counted
    let is_time = match attr.kind {
        SOFTWARE => CLOCKS.contains(&attr.config),
        HARDWARE => CYCLES.contains(&(attr.config & u64::from(u32::MAX))),
        _ => false,
    };
    is_time && attr.precise() == 0 && attr.flags & attr_flag::EXCLUDE_USER == 0
}

/// Returns the registers that the kernel can sample of a program here.
fn user_registers() -> u64 {
    match std::env::consts::ARCH {
        "x86_64" => x86_64::ALL,
        "aarch64" => aarch64::ALL,
        _ => 0,
    }
}

fn clamp_frequency(events: &mut [OpenEvent], notes: &mut Vec<String>) {
    let limit = text(Path::new("/proc/sys/kernel/perf_event_max_sample_rate"));
    let Some(limit) = limit.and_then(|limit| limit.parse::<u64>().ok()).filter(|limit| *limit > 0) else {
        return;
    };
    let mut is_clamped = false;
    for event in
        events.iter_mut().filter(|event| event.attr.is_frequency() && event.attr.sample_period > limit)
    {
        event.attr.sample_period = limit;
        is_clamped = true;
    }
    if is_clamped {
        notes.push(format!("{limit} samples a second is what kernel.perf_event_max_sample_rate permits"));
    }
}

/// Tries each event once and gives up, one by one, what this kernel does not know or permit.
fn settle(
    events: &mut [OpenEvent],
    options: &RecordOptions,
    thread: i32,
    cpus: &[u32],
    notes: &mut Vec<String>,
) -> Result<(), RecordError> {
    let mut index = 0;
    let mut tried: Vec<OwnedFd> = Vec::new();
    while let Some(event) = events.get(index) {
        let cpu = cpus.iter().find(|cpu| event.request.cpus.as_ref().is_none_or(|own| own.contains(cpu)));
        let Some(cpu) = cpu.and_then(|cpu| i32::try_from(*cpu).ok()) else {
            let reason = "none of its CPUs is online".to_owned();
            return Err(RecordError::Event { name: event.request.name.clone(), reason });
        };
        let leader = tried.get(event.request.leader).map(AsFd::as_fd);
        match os::open_event(&event.attr, thread, cpu, leader) {
            Ok(fd) => {
                tried.push(fd);
                index += 1;
            }
            Err(error) => {
                give_up(events, index, options, error, notes)?;
                // from the start: an attribute of all events may have changed
                tried.clear();
                index = 0;
            }
        }
    }
    Ok(())
}

fn give_up(
    events: &mut [OpenEvent],
    index: usize,
    options: &RecordOptions,
    error: io::Error,
    notes: &mut Vec<String>,
) -> Result<(), RecordError> {
    let event = &mut events[index];
    let name = event.request.name.clone();
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            // who may sample the kernel may not have these, but not the other way round
            if event.request.writes_packets && spe::without_physical(&mut event.attr, &Pmus::default()) {
                events.iter_mut().for_each(|event| event.attr.sample_type &= !bit::PHYS_ADDR);
                notes.push("no physical addresses: they need the capability PERFMON".to_owned());
                return Ok(());
            }
            let excludes_kernel = event.attr.flags & attr_flag::EXCLUDE_KERNEL != 0;
            if !excludes_kernel && !event.request.has_scope && options.scope == SampledCode::Permitted {
                for event in events.iter_mut().filter(|event| !event.request.has_scope) {
                    event.attr.flags |= attr_flag::EXCLUDE_KERNEL | attr_flag::EXCLUDE_HV;
                }
                notes.push(format!(
                    "the kernel does not permit to sample itself{}: programs only",
                    paranoid()
                ));
                return Ok(());
            }
            Err(forbidden(excludes_kernel, &options.target))
        }
        Some(libc::ENOSYS) => Err(RecordError::Missing),
        Some(libc::ESRCH) => match options.target {
            Target::Processes(ref pids) => Err(RecordError::NoProcess(pids.first().copied().unwrap_or(0))),
            Target::Threads(ref threads) => Err(RecordError::NoThread(threads.first().copied().unwrap_or(0))),
            _ => Err(RecordError::System { what: "open an event", reason: error }),
        },
        Some(libc::EOPNOTSUPP) if options.call_chains == CallChains::LastBranches => {
            Err(no_last_branches(name))
        }
        Some(libc::EINVAL | libc::E2BIG | libc::EOPNOTSUPP) => {
            if event.request.most_precise && event.attr.precise() > 0 {
                event.attr.flags -= 1 << attr_flag::PRECISE_SHIFT;
                add_return_address(&mut event.attr, options);
                return Ok(());
            }
            if simplify(events) {
                return Ok(());
            }
            if options.call_chains == CallChains::LastBranches {
                return Err(no_last_branches(name));
            }
            let reason = format!("the kernel or the hardware cannot sample it so ({error})");
            Err(RecordError::Event { name, reason })
        }
        Some(libc::EBUSY) if event.request.writes_packets => {
            let reason = "another recording has it: the hardware samples for one at a time".to_owned();
            Err(RecordError::Event { name, reason })
        }
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            let reason =
                "this machine does not have it; without -e the clock is sampled, which works everywhere";
            Err(RecordError::Event { name, reason: reason.to_owned() })
        }
        _ => Err(RecordError::Event { name, reason: error.to_string() }),
    }
}

/// Returns the error of call stacks by last branch records: they need a CPU with these, and an event that the
/// CPU itself counts.
fn no_last_branches(name: String) -> RecordError {
    let reason =
        "this CPU, or the virtual machine, has no last branch records for it; use --call-graph fp or dwarf";
    RecordError::Event { name, reason: reason.to_owned() }
}

/// Leaves out the newest thing that all events ask for, and says whether there was one.
fn simplify(events: &mut [OpenEvent]) -> bool {
    let asks =
        |events: &[OpenEvent], ask: &dyn Fn(&Attr) -> bool| events.iter().any(|event| ask(&event.attr));
    // Linux 6.0, 5.12, 5.1, 5.12
    if asks(events, &|attr| attr.read_format & read_format::LOST != 0) {
        events.iter_mut().for_each(|event| event.attr.read_format &= !read_format::LOST);
    } else if asks(events, &|attr| attr.flags & attr_flag::BUILD_ID != 0) {
        events.iter_mut().for_each(|event| event.attr.flags &= !attr_flag::BUILD_ID);
    } else if asks(events, &|attr| attr.flags & NEWER_RECORDS != 0) {
        events.iter_mut().for_each(|event| event.attr.flags &= !NEWER_RECORDS);
    } else if asks(events, &|attr| attr.sample_type & bit::WEIGHT_STRUCT != 0) {
        for event in events.iter_mut() {
            event.attr.sample_type = event.attr.sample_type & !bit::WEIGHT_STRUCT | bit::WEIGHT;
        }
    } else if asks(events, &|attr| attr.flags & attr_flag::EXCLUDE_GUEST != 0) {
        events.iter_mut().for_each(|event| event.attr.flags &= !attr_flag::EXCLUDE_GUEST);
    } else {
        return false;
    }
    true
}

/// Records about code that comes into the kernel, of Linux 5.1 and later.
const NEWER_RECORDS: u64 = attr_flag::KSYMBOL | attr_flag::BPF_EVENT;

/// Formats ` (kernel.perf_event_paranoid = 2)`, if the value can be read.
fn paranoid() -> String {
    let value = text(Path::new("/proc/sys/kernel/perf_event_paranoid"));
    value.map(|value| format!(" (kernel.perf_event_paranoid = {value})")).unwrap_or_default()
}

fn forbidden(excludes_kernel: bool, target: &Target) -> RecordError {
    // at 2 and below own programs are permitted: something else says no
    let setting =
        text(Path::new("/proc/sys/kernel/perf_event_paranoid")).and_then(|value| value.parse().ok());
    let is_elsewhere = setting.is_some_and(|value: i32| value <= 2);
    let (what, advice) = match (target, excludes_kernel) {
        (Target::System, _) => (
            "all processes",
            "as root, or with the capability PERFMON, or after `sysctl kernel.perf_event_paranoid=0`; a command of \
             your own can be recorded without -a",
        ),
        (_, false) => (
            "itself",
            "leave out :k, or run as root, or with the capability PERFMON, or after \
             `sysctl kernel.perf_event_paranoid=1`",
        ),
        (Target::Processes(_) | Target::Threads(_), true) => (
            "that process",
            "it must be yours; else run as root, or with the capabilities PERFMON and SYS_PTRACE",
        ),
        (Target::Command, true) if is_elsewhere => (
            "programs",
            "not by that setting, but in a container, by its seccomp profile: start it with the capability PERFMON \
             and a profile that permits perf_event_open; `record --trace` needs neither",
        ),
        (Target::Command, true) => (
            "programs",
            "run as root, or `sysctl kernel.perf_event_paranoid=2`; `record --trace` needs neither",
        ),
    };
    RecordError::Forbidden { what, setting: paranoid(), advice }
}

/// Opens each event on each of its CPUs for each thread; the first on a CPU has the ring, the others write to
/// it too. The first is one that writes packets, if there is one, as their buffer belongs to the ring's event.
fn open_everywhere(
    events: &mut [OpenEvent],
    options: &RecordOptions,
    threads: &[i32],
    cpus: &[u32],
) -> Result<Rings, RecordError> {
    let mut rings = Rings::default();
    for cpu in cpus {
        let mut has_ring: Option<OwnedFd> = None;
        for thread in threads {
            open_on(events, options, *thread, *cpu, &mut has_ring, &mut rings)?;
        }
    }
    if events.iter().all(|event| event.ids.is_empty()) {
        return match &options.target {
            Target::Processes(pids) => Err(RecordError::NoProcess(pids.first().copied().unwrap_or(0))),
            Target::Threads(threads) => Err(RecordError::NoThread(threads.first().copied().unwrap_or(0))),
            _ => Ok(rings),
        };
    }
    Ok(rings)
}

fn open_on(
    events: &mut [OpenEvent],
    options: &RecordOptions,
    thread: i32,
    cpu: u32,
    has_ring: &mut Option<OwnedFd>,
    rings: &mut Rings,
) -> Result<(), RecordError> {
    let failed = |what| move |reason| RecordError::System { what, reason };
    let mut leaders: HashMap<usize, OwnedFd> = HashMap::new();
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.sort_by_key(|index| !events[*index].request.writes_packets);
    for index in order {
        let event = &mut events[index];
        if event.request.cpus.as_ref().is_some_and(|own| !own.contains(&cpu)) {
            continue;
        }
        let leader = leaders.get(&event.request.leader).map(AsFd::as_fd);
        let fd = match os::open_event(&event.attr, thread, cpu as i32, leader) {
            Ok(fd) => fd,
            // the thread has ended meanwhile
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EMFILE) => {
                return Err(RecordError::System {
                    what: "open an event for each thread on each CPU; raise the limit of open files (ulimit -n)",
                    reason: error,
                });
            }
            Err(reason) => return Err(RecordError::System { what: "open an event", reason }),
        };
        event.ids.push(os::event_id(&fd).map_err(failed("ask for an event's number"))?);
        match has_ring {
            Some(first) => os::set_output(&fd, first).map_err(failed("share a ring"))?,
            None => {
                const MEMORY: &str = "get memory for the samples; use a smaller --ring-size, or raise kernel.perf_event_mlock_kb";
                let mut ring = Ring::map(&fd, options.ring_pages).map_err(failed(MEMORY))?;
                if event.request.writes_packets {
                    rings.map_packets(&mut ring, &fd, options.ring_pages).map_err(failed(MEMORY))?;
                }
                rings.add(fd.as_raw_fd(), cpu, ring);
                *has_ring = Some(fd.try_clone().map_err(failed("copy a descriptor"))?);
            }
        }
        if event.request.writes_packets {
            rings.add_writer(cpu, fd.as_raw_fd());
        }
        if event.request.leader == index {
            leaders.insert(index, fd.try_clone().map_err(failed("copy a descriptor"))?);
            event.leaders.push(fd);
        } else {
            event.members.push(fd);
        }
    }
    Ok(())
}
