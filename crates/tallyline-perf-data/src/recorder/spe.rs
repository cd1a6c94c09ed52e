//! The particulars of Arm's SPE: the description of its CPUs, its terms, its buffers.

use super::request::EventRequest;
use super::sysfs::{Pmu, Pmus, text};
use crate::attr::Attr;
use crate::spe::{self, CpuMetadata};
use std::path::Path;

/// The prefix of the names of PMUs of Arm's statistical profiling.
pub(super) const NAME: &str = "arm_spe";

/// The period where the driver does not say its shortest one: the longest that the hardware may have as that.
const PERIOD: u64 = 4096;

/// The accesses that the names common to all machines ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accesses {
    Loads,
    Stores,
}

impl Accesses {
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "mem-loads" => Some(Self::Loads),
            "mem-stores" => Some(Self::Stores),
            _ => None,
        }
    }

    /// Returns `true` if the hardware can tell these accesses (loads or stores) from others: the PMU has a filter for
    /// them.
    pub(super) fn are_told_by(self, pmu: &Pmu) -> bool {
        pmu.has_term(if self == Self::Loads { "load_filter" } else { "store_filter" })
    }

    /// Returns the terms that perf mem asks for: loads of 30 cycles and more, with times and physical
    /// addresses. Terms that the driver does not know are left out.
    pub(super) fn terms(self, pmu: &Pmu) -> String {
        let terms: &[(&str, u32)] = match self {
            Self::Loads => &[("ts_enable", 1), ("pa_enable", 1), ("load_filter", 1), ("min_latency", 30)],
            Self::Stores => &[("ts_enable", 1), ("pa_enable", 1), ("store_filter", 1)],
        };
        let known = terms.iter().filter(|(name, _)| pmu.has_term(name));
        known.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
    }
}

/// Adds the defaults: samples have times, and are as frequent as the hardware likes.
pub(super) fn complete(pmu: &Pmu, terms: &str, event: &mut EventRequest) -> Result<(), String> {
    let says = |name: &str| terms.split(',').any(|term| term.split('=').next().map(str::trim) == Some(name));
    if says("freq") {
        return Err("it has no frequency, only a period: period=NUMBER".to_owned());
    }
    if !says("ts_enable") && pmu.has_term("ts_enable") {
        pmu.set(&mut event.attr, "ts_enable", 1)?;
    }
    if !event.has_period {
        event.attr.sample_period = shortest_period(pmu).unwrap_or(PERIOD);
        event.has_period = true;
    }
    event.writes_packets = true;
    Ok(())
}

/// Takes physical addresses out of what is asked for, if they are.
pub(super) fn without_physical(attr: &mut Attr, pmus: &Pmus) -> bool {
    let before = attr.config;
    if let Some(pmu) = pmus.of_kind(attr.kind) {
        // a PMU that has no such term has nothing to leave out
        let _ = pmu.set(attr, "pa_enable", 0);
    }
    attr.config != before
}

/// Returns `true` if an Arm SPE event asks for physical addresses.
pub(super) fn has_physical(attr: &Attr, pmus: &Pmus) -> bool {
    without_physical(&mut attr.clone(), pmus)
}

fn shortest_period(pmu: &Pmu) -> Option<u64> {
    pmu.capability("min_interval")?.parse().ok().filter(|period| *period > 0)
}

/// Returns the words that describe the CPUs, of a recording by this PMU and perhaps those of other kinds of
/// core: what they are is in a folder for each, as in `/sys/devices/system/cpu`.
pub(super) fn description(kind: u32, pmus: &Pmus, folder: &Path, online: &[u32]) -> Vec<u64> {
    let pmus = pmus.all().into_iter().filter(|pmu| pmu.name.starts_with(NAME));
    let pmus: Vec<_> = pmus.map(|pmu| (pmu.cpus(), pmu)).collect();
    let cpus = online.iter().map(|number| {
        let traces =
            |(cpus, _): &&(Option<Vec<u32>>, Pmu)| cpus.as_ref().is_none_or(|cpus| cpus.contains(number));
        let pmu = pmus.iter().find(traces).map(|(_, pmu)| pmu);
        CpuMetadata {
            number: *number,
            midr: model(folder, *number).unwrap_or(0),
            pmu: pmu.map(|pmu| pmu.kind),
            min_interval: pmu.and_then(shortest_period).unwrap_or(0),
            events: pmu.and_then(|pmu| hexadecimal(&pmu.capability("event_filter")?)).unwrap_or(0),
        }
    });
    spe::auxtrace_info(kind, &cpus.collect::<Vec<_>>())
}

/// Reads `MIDR_EL1` of a CPU.
fn model(folder: &Path, cpu: u32) -> Option<u64> {
    hexadecimal(&text(&folder.join(format!("cpu{cpu}/regs/identification/midr_el1")))?)
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::events::parse;
    use crate::recorder::sysfs::tests::Tree;

    fn machine(name: &str) -> Tree {
        Tree::new(
            name,
            &[
                ("pmus/arm_spe_0/type", "12"),
                ("pmus/arm_spe_0/cpumask", "0-1,3"),
                ("pmus/arm_spe_0/caps/min_interval", "256"),
                ("pmus/arm_spe_0/caps/event_filter", "0x0000000000ff00ff"),
                ("pmus/arm_spe_1/type", "13"),
                ("pmus/arm_spe_1/cpumask", "4"),
                ("pmus/arm_spe_1/format/load_filter", "config:33"),
                ("pmus/arm_spe_2/type", "14"),
                ("pmus/arm_spe_2/cpumask", "9"),
                ("pmus/arm_spe_1/format/store_filter", "config:34"),
                ("pmus/arm_spe_0/format/ts_enable", "config:0"),
                ("pmus/arm_spe_0/format/pa_enable", "config:1"),
                ("pmus/arm_spe_0/format/load_filter", "config:33"),
                ("pmus/arm_spe_0/format/store_filter", "config:34"),
                ("pmus/arm_spe_0/format/min_latency", "config2:0-11"),
                ("cpus/cpu0/regs/identification/midr_el1", "0x00000000410fd490"),
                ("cpus/cpu1/regs/identification/midr_el1", "0x00000000413fd0c1"),
            ],
        )
    }

    fn events(machine: &Tree, texts: &[&str]) -> Result<Vec<EventRequest>, String> {
        let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
        parse(&texts, &Pmus::at(machine.path("pmus")))
    }

    #[test]
    fn what_goes_without_saying_is_asked_for() {
        let machine = machine("spe-defaults");
        let [plain] = &events(&machine, &["arm_spe_0//u"]).expect("known")[..] else { panic!("one event") };
        assert_eq!((plain.attr.config, plain.attr.sample_period, plain.has_period), (1, 256, true));
        assert!(plain.writes_packets && plain.is_memory && plain.has_scope);
        let own = &events(&machine, &["arm_spe_0/ts_enable=0,period=1000/"]).expect("known")[0];
        assert_eq!((own.attr.config, own.attr.sample_period), (0, 1000));
        assert!(events(&machine, &["arm_spe_0/freq=100/"]).is_err_and(|error| error.contains("period")));
    }

    #[test]
    fn loads_and_stores_are_one_event() {
        let machine = machine("spe-names");
        let loads = events(&machine, &["mem-loads"]).expect("known");
        assert_eq!(loads.len(), 2, "one for each kind of core");
        assert_eq!(loads[1].name, "arm_spe_1/load_filter=1/", "what its driver knows");
        assert_eq!(loads[0].name, "arm_spe_0/ts_enable=1,pa_enable=1,load_filter=1,min_latency=30/");
        assert_eq!((loads[0].attr.config, loads[0].attr.config2), (0b11 | 1 << 33, 30));
        let [both, _] = &events(&machine, &["mem-loads:u", "mem-stores:u"]).expect("known")[..] else {
            panic!("the hardware samples for one event at a time")
        };
        assert_eq!((both.attr.config, both.attr.config2), (0b11 | 3 << 33, 30));
        assert_eq!(
            both.name,
            "arm_spe_0/ts_enable=1,pa_enable=1,load_filter=1,min_latency=30,store_filter=1/u"
        );
        assert!(
            events(&machine, &["mem-loads", "mem-stores:u"]).is_err_and(|error| error.contains("same code"))
        );
        assert_eq!(both.cpus.as_deref(), Some(&[0, 1, 3][..]));
    }

    #[test]
    fn the_hardware_has_one_event_at_a_time_and_no_groups() {
        let machine = machine("spe-one");
        for texts in [&["arm_spe_0//", "arm_spe_0/load_filter=1/"][..], &["{dummy,arm_spe_0//}"]] {
            let error = events(&machine, texts).expect_err("not possible");
            assert!(error.contains("arm_spe_0"), "{error}");
        }
        assert_eq!(events(&machine, &["cpu-clock", "arm_spe_0//"]).map(|events| events.len()), Ok(2));
    }

    #[test]
    fn physical_addresses_can_be_left_out() {
        let machine = machine("spe-physical");
        let pmus = Pmus::at(machine.path("pmus"));
        let mut event = events(&machine, &["mem-stores"]).expect("known").remove(0);
        assert!(has_physical(&event.attr, &pmus));
        assert!(without_physical(&mut event.attr, &pmus));
        assert_eq!(event.attr.config, 1 | 1 << 34);
        assert!(!has_physical(&event.attr, &pmus) && !without_physical(&mut event.attr, &pmus));
    }

    #[test]
    fn cpus_are_described_as_sysfs_has_them() {
        let machine = machine("spe-cpus");
        let words = description(12, &Pmus::at(machine.path("pmus")), &machine.path("cpus"), &[0, 1, 2, 4]);
        assert_eq!(words[..4], [2, 4, 12, 4]);
        let cpus: Vec<_> = words[4..].chunks(7).collect();
        assert_eq!(cpus[0][1..], [0, 4, 0x410f_d490, 12, 256, 0xff_00ff]);
        assert_eq!(cpus[1][1..], [1, 4, 0x413f_d0c1, 12, 256, 0xff_00ff]);
        assert_eq!(cpus[3][1..], [4, 4, 0, 13, 0, 0]);
        // not one of a PMU's, and offline when that was read
        assert_eq!(cpus[2][1..], [2, 4, 0, u64::MAX, 0, 0]);
    }
}
