//! Event strings, as `perf list` and `perf record -e` write them.
//!
//! `cpu-clock:u`, `cycles:pp`, `mem-loads`, `cpu_core/mem-loads,ldlat=30/P`, `ibs_op//`,
//! `mem:0x1000/8:w`, `r1c2`, and groups of them, `{cycles,instructions}`.

use super::request::EventRequest;
use super::spe::{self, Accesses};
use super::sysfs::{Pmu, Pmus};
use super::tracepoints;
use crate::abi::attr_flag;
use crate::attr::Attr;
use crate::file::EventGroup;
use crate::names::{BREAKPOINT, HARDWARE, NAMES, RAW, TRACEPOINT};

/// The latency threshold of `mem-loads` where the text gives none: loads of 30 cycles and more.
const LATENCY: &str = "ldlat=30";

/// The event that leads groups on PMUs that cannot sample loads without it.
const AUXILIARY: &str = "mem-loads-aux";

/// The letters behind an event's colon; what is longer than so many, or has others, is a tracepoint's name.
const MODIFIER_LETTERS: &str = "ukpPHD";
const MODIFIERS: usize = 6;

/// Parses the event lists of several `-e` options, such as `cycles:u` or `{a,b}`, into events to open.
///
/// # Errors
/// One line that names what is not understood and what there is instead.
pub fn parse(texts: &[String], pmus: &Pmus) -> Result<Vec<EventRequest>, String> {
    let mut events = Vec::new();
    for text in texts {
        for item in split(text)? {
            match item.strip_prefix('{') {
                Some(rest) => {
                    let (inner, modifiers) =
                        rest.rsplit_once('}').ok_or_else(|| format!("`{item}`: the group has no end"))?;
                    let leader = events.len();
                    for event in split(inner)? {
                        parse_one(event, modifiers, pmus, &mut events)?;
                    }
                    if events.len() == leader {
                        return Err(format!("`{item}`: a group without events"));
                    }
                    events[leader..].iter_mut().for_each(|event| event.leader = leader);
                    if let Some(event) = events[leader..].iter().find(|event| event.writes_packets) {
                        return Err(format!("`{item}`: {} cannot be in a group", event.name));
                    }
                }
                None => parse_one(item, "", pmus, &mut events)?,
            }
        }
    }
    Ok(events)
}

/// Returns the groups of two or more events (`-e '{a,b}'`) that are to be scheduled and counted together, for the
/// perf.data header; events alone are left out.
pub fn groups(events: &[EventRequest]) -> Vec<EventGroup> {
    let members = |leader: usize| events.iter().filter(|event| event.leader == leader).count();
    let leaders = (0..events.len()).filter(|index| events[*index].leader == *index);
    leaders
        .map(|leader| EventGroup { name: String::new(), leader, members: members(leader) })
        .filter(|group| group.members > 1)
        .collect()
}

/// Parts between commas that are not within braces or slashes.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut start, mut depth, mut in_terms) = (Vec::new(), 0, 0_u32, false);
    for (index, letter) in text.char_indices() {
        match letter {
            // a breakpoint's length is no list of terms
            '/' if !text[start..index].trim_start_matches('{').starts_with("mem:") => in_terms = !in_terms,
            '{' if !in_terms => depth += 1,
            '}' if !in_terms => {
                depth = depth.checked_sub(1).ok_or_else(|| format!("`{text}`: a brace too many"))?;
            }
            ',' if depth == 0 && !in_terms => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    let parts: Vec<_> = parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { Err(format!("`{text}`: no event")) } else { Ok(parts) }
}

fn parse_one(text: &str, group: &str, pmus: &Pmus, events: &mut Vec<EventRequest>) -> Result<(), String> {
    let complain = |reason: String| format!("event `{text}`: {reason}");
    if !text.starts_with("mem:")
        && let Some((pmu, rest)) = text.split_once('/')
    {
        let (terms, modifiers) =
            rest.rsplit_once('/').ok_or_else(|| complain("a slash is missing".to_owned()))?;
        let Some(pmu) = pmus.get(pmu) else {
            let names: Vec<_> = pmus.all().into_iter().map(|pmu| pmu.name).collect();
            return Err(complain(format!("no PMU `{pmu}` here; there are {}", names.join(", "))));
        };
        let modifiers = [modifiers, group].concat();
        return pmu_event(&pmu, terms, &modifiers, text, events).map_err(complain);
    }
    if let Some(rest) = text.strip_prefix("mem:") {
        let (mut event, modifiers) = breakpoint(rest).map_err(complain)?;
        event.name = text.to_owned();
        modify(&mut event, &[modifiers, group].concat()).map_err(complain)?;
        return push(event, events);
    }
    let (name, own) = text.split_once(':').unwrap_or((text, ""));
    let modifiers = [own, group].concat();
    if let Some((kind, config, _)) = NAMES.iter().find(|(.., known)| *known == name) {
        let cores = if *kind == HARDWARE { pmus.hybrid_cores() } else { Vec::new() };
        for core in &cores {
            // the kernel takes the PMU's number in the upper half
            let attr = Attr { kind: *kind, config: *config | u64::from(core.kind) << 32, ..Attr::default() };
            let mut event = plain(format!("{}/{name}/{own}", core.name), attr);
            event.cpus = core.cpus();
            modify(&mut event, &modifiers).map_err(complain)?;
            push(event, events)?;
        }
        if cores.is_empty() {
            let mut event = plain(text.to_owned(), Attr { kind: *kind, config: *config, ..Attr::default() });
            modify(&mut event, &modifiers).map_err(complain)?;
            push(event, events)?;
        }
        return Ok(());
    }
    if let Some(config) = name.strip_prefix('r').and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
        let mut event = plain(text.to_owned(), Attr { kind: RAW, config, ..Attr::default() });
        modify(&mut event, &modifiers).map_err(complain)?;
        return push(event, events);
    }
    // a tracepoint: its system, its name, perhaps modifiers
    let is_modifiers = own.len() <= MODIFIERS && own.chars().all(|letter| MODIFIER_LETTERS.contains(letter));
    if !is_modifiers && pmus.with_event(name).is_empty() {
        let (point, own) = own.split_once(':').unwrap_or((own, ""));
        let modifiers = [own, group].concat();
        for (id, found) in tracepoints::find(pmus, name, point).map_err(complain)? {
            let suffix = if own.is_empty() { String::new() } else { format!(":{own}") };
            let attr = Attr { kind: TRACEPOINT, config: id, sample_period: 1, ..Attr::default() };
            let mut event = EventRequest { has_period: true, ..plain(found + &suffix, attr) };
            modify(&mut event, &modifiers).map_err(complain)?;
            push(event, events)?;
        }
        return Ok(());
    }
    // an event that some PMUs have: mem-loads and mem-stores
    let found = pmus.with_event(name);
    if found.is_empty() {
        return match Accesses::of(name) {
            Some(accesses) => accesses_by_packets(accesses, &modifiers, pmus, events).map_err(complain),
            None => Err(complain(unknown(name))),
        };
    }
    for pmu in found {
        let terms = if name == "mem-loads" { format!("{name},{LATENCY}") } else { name.to_owned() };
        let modifiers =
            if modifiers.contains(['p', 'P']) { modifiers.clone() } else { format!("{modifiers}P") };
        let full = format!("{}/{terms}/{modifiers}", pmu.name);
        pmu_event(&pmu, &terms, &modifiers, &full, events).map_err(complain)?;
    }
    Ok(())
}

/// Loads or stores on Arm, on each kind of core: with the other ones where they are asked for already, as the
/// hardware samples for one event at a time.
fn accesses_by_packets(
    accesses: Accesses,
    modifiers: &str,
    pmus: &Pmus,
    events: &mut Vec<EventRequest>,
) -> Result<(), String> {
    let found = pmus.all().into_iter().filter(|pmu| pmu.name.starts_with(spe::NAME));
    let found: Vec<_> = found.filter(|pmu| accesses.are_told_by(pmu)).collect();
    if found.is_empty() {
        return Err(unknown("mem-loads"));
    }
    let mut wanted = plain(String::new(), Attr::default());
    modify(&mut wanted, modifiers)?;
    for pmu in found {
        let terms = accesses.terms(&pmu);
        let other = events.iter_mut().find(|event| event.writes_packets && event.attr.kind == pmu.kind);
        let Some(other) = other else {
            pmu_event(&pmu, &terms, modifiers, &format!("{}/{terms}/{modifiers}", pmu.name), events)?;
            continue;
        };
        if (wanted.has_scope, wanted.attr.flags) != (other.has_scope, other.attr.flags) {
            return Err(format!("{} samples loads and stores by one event, of the same code", pmu.name));
        }
        for term in terms.split(',') {
            term_into(&pmu, term, other)?;
            if !other.name.contains(term)
                && let Some(end) = other.name.rfind('/')
            {
                other.name.insert_str(end, &format!(",{term}"));
            }
        }
    }
    Ok(())
}

fn unknown(name: &str) -> String {
    if name.starts_with("mem-") {
        return "this machine cannot sample memory accesses by that; without -e the clock is sampled, which works \
                everywhere"
            .to_owned();
    }
    let mut names: Vec<_> = NAMES.iter().map(|(.., name)| *name).collect();
    names.sort_unstable();
    format!("not known; there are {}, and PMU/TERMS/ for what is in sysfs", names.join(", "))
}

fn plain(name: String, attr: Attr) -> EventRequest {
    EventRequest {
        name,
        attr,
        cpus: None,
        leader: 0,
        most_precise: false,
        has_period: false,
        is_memory: false,
        has_scope: false,
        writes_packets: false,
    }
}

fn push(mut event: EventRequest, events: &mut Vec<EventRequest>) -> Result<(), String> {
    event.leader = events.len();
    events.push(event);
    Ok(())
}

/// Adds `PMU/TERMS/MODIFIERS`, behind its auxiliary leader where the PMU needs one.
fn pmu_event(
    pmu: &Pmu,
    terms: &str,
    modifiers: &str,
    text: &str,
    events: &mut Vec<EventRequest>,
) -> Result<(), String> {
    let words = || terms.split(',').map(str::trim).filter(|term| !term.is_empty());
    let samples_loads = words().any(|term| term == "mem-loads");
    let leads = |events: &[EventRequest]| {
        events.last().is_some_and(|event| event.name.contains(AUXILIARY) && event.attr.kind == pmu.kind)
    };
    let leader = events.len();
    let needs_leader = samples_loads && pmu.event(AUXILIARY).is_some() && !leads(events);
    if needs_leader {
        let scope: String = modifiers.chars().filter(|letter| matches!(letter, 'u' | 'k')).collect();
        let mut event = plain(format!("{}/{AUXILIARY}/{scope}", pmu.name), Attr::default());
        fill(pmu, AUXILIARY, &mut event)?;
        modify(&mut event, &scope)?;
        push(event, events)?;
    }
    let mut event = plain(text.to_owned(), Attr::default());
    for term in words() {
        term_into(pmu, term, &mut event)?;
    }
    event.attr.kind = pmu.kind;
    event.cpus = pmu.cpus();
    let is_spe = pmu.name.starts_with(spe::NAME);
    event.is_memory = words().any(|term| term.starts_with("mem-") && term != AUXILIARY)
        || pmu.name.starts_with("ibs_op")
        || is_spe;
    if is_spe {
        spe::complete(pmu, terms, &mut event)?;
        if let Some(other) = events.iter().find(|other| other.writes_packets && other.attr.kind == pmu.kind) {
            return Err(format!("{} samples for one event at a time, and {} is there", pmu.name, other.name));
        }
    }
    modify(&mut event, modifiers)?;
    push(event, events)?;
    if needs_leader {
        events[leader..].iter_mut().for_each(|event| event.leader = leader);
    }
    Ok(())
}

fn fill(pmu: &Pmu, terms: &str, event: &mut EventRequest) -> Result<(), String> {
    event.attr.kind = pmu.kind;
    event.cpus = pmu.cpus();
    terms.split(',').filter(|term| !term.is_empty()).try_for_each(|term| term_into(pmu, term, event))
}

/// Applies one term to an event: an event of the PMU's own, which stands for other terms, or bits.
fn term_into(pmu: &Pmu, term: &str, event: &mut EventRequest) -> Result<(), String> {
    let (name, value) = match term.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (term, None),
    };
    if value.is_none()
        && let Some(definition) = pmu.event(name)
    {
        for part in definition.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, "1"));
            // what the user has to say
            if value == "?" {
                return Err(format!("`{term}` needs {name}=…"));
            }
            pmu.set(&mut event.attr, name, number(value)?).map_err(|reason| format!("`{name}`: {reason}"))?;
        }
        return Ok(());
    }
    match (name, value) {
        ("name", Some(value)) => value.clone_into(&mut event.name),
        ("period", Some(value)) => {
            event.attr.sample_period = number(value)?;
            event.has_period = true;
        }
        ("freq", Some(value)) => {
            event.attr.sample_period = number(value)?;
            event.attr.flags |= attr_flag::FREQ;
            event.has_period = true;
        }
        _ => {
            let value = value.map_or(Ok(1), number)?;
            pmu.set(&mut event.attr, name, value).map_err(|reason| {
                let words = pmu.vocabulary();
                format!("`{name}`: {reason}; {} has {}", pmu.name, words.join(", "))
            })?;
        }
    }
    Ok(())
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is no number"))
}

/// Parses `ADDRESS[/LENGTH][:ACCESS]` with an access of `r`, `w` and `x`, by default `rw`. Returns the event
/// and the text behind a second colon.
fn breakpoint(text: &str) -> Result<(EventRequest, &str), String> {
    let mut parts = text.splitn(3, ':');
    let place = parts.next().unwrap_or_default();
    let access = parts.next().unwrap_or("rw");
    let (address, length) = place.split_once('/').unwrap_or((place, "4"));
    let mut bits = 0;
    for letter in access.chars() {
        bits |= match letter {
            'r' => 1,
            'w' => 2,
            'x' => 4,
            other => return Err(format!("invalid access type `{other}` (expected r, w or x)")),
        };
    }
    // code is watched for the length of an address
    let length = if bits == 4 { size_of::<usize>() as u64 } else { number(length)? };
    let attr = Attr {
        kind: BREAKPOINT,
        bp_type: bits,
        config1: number(address)?,
        config2: length,
        sample_period: 1,
        ..Attr::default()
    };
    Ok((EventRequest { has_period: true, ..plain(String::new(), attr) }, parts.next().unwrap_or_default()))
}

fn modify(event: &mut EventRequest, modifiers: &str) -> Result<(), String> {
    let (mut user, mut kernel, mut precise) = (false, false, 0_u64);
    for letter in modifiers.chars() {
        match letter {
            ':' => {}
            'u' => user = true,
            'k' => kernel = true,
            'p' if precise < 3 => precise += 1,
            'P' => event.most_precise = true,
            // the host, pinned: nothing to do for these here
            'H' | 'D' => {}
            other => {
                return Err(format!(
                    "`{other}` is no modifier: u (programs), k (kernel), p to ppp and P (precise)"
                ));
            }
        }
    }
    if user || kernel {
        event.has_scope = true;
        event.attr.flags |= if user { 0 } else { attr_flag::EXCLUDE_USER };
        event.attr.flags |= if kernel { 0 } else { attr_flag::EXCLUDE_KERNEL | attr_flag::EXCLUDE_HV };
    }
    event.attr.flags |= precise << attr_flag::PRECISE_SHIFT;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::sysfs::tests::Tree;

    /// A machine with two kinds of core, as Intel's hybrid ones are: only the large core's PMU wants
    /// an auxiliary leader.
    struct Hybrid(Tree);

    impl Hybrid {
        fn new(name: &str) -> Self {
            let files = [
                ("software/type", "1"),
                ("cpu_core/type", "4"),
                ("cpu_core/cpus", "0-3"),
                ("cpu_core/format/event", "config:0-7"),
                ("cpu_core/format/umask", "config:8-15"),
                ("cpu_core/format/ldlat", "config1:0-15"),
                ("cpu_core/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
                ("cpu_core/events/mem-loads-aux", "event=0x03,umask=0x82"),
                ("cpu_core/events/mem-stores", "event=0xcd,umask=0x2"),
                ("cpu_atom/type", "10"),
                ("cpu_atom/cpus", "4-7"),
                ("cpu_atom/format/event", "config:0-7"),
                ("cpu_atom/format/umask", "config:8-15"),
                ("cpu_atom/format/ldlat", "config1:0-15"),
                ("cpu_atom/events/mem-loads", "event=0xd0,umask=0x5,ldlat=3"),
                ("ibs_op/type", "11"),
                ("ibs_op/format/cnt_ctl", "config:19"),
                ("arm_spe_0/type", "12"),
                ("arm_spe_0/format/load_filter", "config:33"),
                ("arm_spe_0/format/min_latency", "config2:0-11"),
            ];
            Self(Tree::new(name, &files))
        }

        fn parse(&self, texts: &[&str]) -> Result<Vec<EventRequest>, String> {
            let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
            super::parse(&texts, &Pmus::at(self.0.path("")))
        }
    }

    #[test]
    fn loads_of_a_hybrid_machine_have_an_auxiliary_leader_where_the_pmu_wants_one() {
        let machine = Hybrid::new("loads");
        let events = machine.parse(&["mem-loads", "mem-stores"]).expect("both cores have loads");
        let names: Vec<_> = events.iter().map(|event| (event.name.as_str(), event.leader)).collect();
        assert_eq!(
            names,
            [
                ("cpu_atom/mem-loads,ldlat=30/P", 0),
                ("cpu_core/mem-loads-aux/", 1),
                ("cpu_core/mem-loads,ldlat=30/P", 1),
                ("cpu_core/mem-stores/P", 3),
            ]
        );
        let loads = &events[2];
        assert_eq!((loads.attr.kind, loads.attr.config, loads.attr.config1), (4, 0x1cd, 30));
        assert_eq!(loads.cpus.as_deref(), Some(&[0, 1, 2, 3][..]));
        assert!(loads.is_memory && loads.most_precise && !events[1].is_memory);
        assert_eq!(events[1].attr.config, 0x8203);
        let groups = groups(&events);
        assert_eq!(groups, [EventGroup { name: String::new(), leader: 1, members: 2 }]);
    }

    #[test]
    fn a_group_that_has_its_leader_gets_no_second_one() {
        let machine = Hybrid::new("group");
        let events =
            machine.parse(&["{cpu_core/mem-loads-aux/,cpu_core/mem-loads,ldlat=50/}:u"]).expect("a group");
        assert_eq!(events.iter().map(|event| event.leader).collect::<Vec<_>>(), [0, 0]);
        assert_eq!(events[1].attr.config1, 50);
        assert!(events.iter().all(|event| event.has_scope));
    }

    #[test]
    fn terms_are_put_where_sysfs_says() {
        let machine = Hybrid::new("terms");
        let events = machine
            .parse(&["cpu_core/event=0xc0,umask=0x3,name=mine,period=1000/ukpp", "ibs_op/cnt_ctl=1/"])
            .expect("known terms");
        assert_eq!(
            (events[0].name.as_str(), events[0].attr.config, events[0].attr.sample_period),
            ("mine", 0x3c0, 1000)
        );
        assert_eq!((events[0].attr.precise(), events[0].has_period), (2, true));
        assert_eq!(events[0].attr.flags & (attr_flag::EXCLUDE_USER | attr_flag::EXCLUDE_KERNEL), 0);
        assert_eq!((events[1].attr.kind, events[1].attr.config, events[1].is_memory), (11, 1 << 19, true));
        let spe = machine.parse(&["arm_spe_0/load_filter,min_latency=30/"]).expect("known terms");
        assert_eq!((spe[0].attr.config, spe[0].attr.config2), (1 << 33, 30));
        assert!(spe[0].writes_packets && spe[0].is_memory);
    }

    #[test]
    fn names_that_every_kernel_has_are_known() {
        let machine = Hybrid::new("names");
        let events = machine.parse(&["cpu-clock:u,page-faults", "r1c2:k"]).expect("known names");
        assert_eq!((events[0].attr.kind, events[0].attr.config), (1, 0));
        assert_eq!(events[0].attr.flags, attr_flag::EXCLUDE_KERNEL | attr_flag::EXCLUDE_HV);
        assert_eq!((events[1].attr.kind, events[1].attr.config), (1, 2));
        assert_eq!((events[2].attr.kind, events[2].attr.config), (RAW, 0x1c2));
        assert_eq!(events[2].attr.flags, attr_flag::EXCLUDE_USER);
        // on a hybrid machine one for each kind of core
        let cycles = machine.parse(&["cycles:u"]).expect("known name");
        let names: Vec<_> = cycles.iter().map(|event| (event.name.as_str(), event.attr.config)).collect();
        assert_eq!(names, [("cpu_atom/cycles/u", 10 << 32), ("cpu_core/cycles/u", 4 << 32)]);
    }

    #[test]
    fn breakpoints_are_addresses_with_a_length_and_an_access() {
        let machine = Hybrid::new("breakpoint");
        let events = machine.parse(&["mem:0x1000/8:w:u,mem:4096:x"]).expect("breakpoints");
        let attr = &events[0].attr;
        assert_eq!(
            (attr.kind, attr.config1, attr.config2, attr.bp_type, attr.sample_period),
            (5, 0x1000, 8, 2, 1)
        );
        assert!(events[0].has_scope);
        assert_eq!((events[1].attr.config1, events[1].attr.config2, events[1].attr.bp_type), (4096, 8, 4));
    }

    #[test]
    fn what_is_not_understood_is_said_with_what_there_is() {
        let machine = Hybrid::new("errors");
        for (text, part) in [
            ("cpu_core/evnt=1/", "cpu_core has event"),
            ("cpu_core/event=0x1ff/", "too large"),
            ("nowhere/event=1/", "there are arm_spe_0"),
            ("mem-nothing", "without -e the clock"),
            ("cyclez", "cycles"),
            ("cycles:q", "no modifier"),
            ("{cycles", "no end"),
            ("cpu_core/event=1", "slash"),
            ("", "no event"),
            ("mem:0x10:q", "invalid access type"),
            ("../x/event=1/", "no PMU"),
        ] {
            let error = machine.parse(&[text]).expect_err(text);
            assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
