//! The request to record an event.

use crate::attr::Attr;

/// An event parsed from an `-e` option, ready to be opened: name, attributes, event group (`{a,b}`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRequest {
    /// The name that the event will have in the perf.data file.
    pub(crate) name: String,
    /// The event's attributes; the scope's bits are set where the text gives a scope.
    pub(crate) attr: Attr,
    /// The CPUs to count the event on, if not all.
    pub(crate) cpus: Option<Vec<u32>>,
    /// The index of the event that leads this event's group, which may be itself.
    pub(crate) leader: usize,
    /// `true` if samples are to be as close to the instruction as the hardware can take them (modifier `P`).
    pub(crate) most_precise: bool,
    /// `true` if the text gives a period or frequency.
    pub(crate) has_period: bool,
    /// `true` if samples have data sources.
    pub(crate) is_memory: bool,
    /// `true` if the text says whose code to sample.
    pub(crate) has_scope: bool,
    /// `true` if the hardware writes packets into a buffer of its own, and no samples into the rings.
    pub(crate) writes_packets: bool,
}

impl EventRequest {
    /// Returns the name that the event will have in the perf.data file.
    #[inline]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the attributes to open the event with. The bits that exclude user or kernel code are set only where
    /// the option's modifiers ask for it.
    #[inline]
    pub fn attr(&self) -> &Attr {
        &self.attr
    }

    /// Returns the index, in the list of parsed events, of the event that leads this one's event group (`{a,b}`); its
    /// own index if it leads or is alone.
    #[inline]
    pub fn leader(&self) -> usize {
        self.leader
    }
}
