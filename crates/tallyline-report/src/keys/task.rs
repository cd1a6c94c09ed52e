//! Sort keys of the task: thread, process, CPU, socket.

use super::{Key, Needs};
use crate::index::{ABSENT, key_value};
use crate::names::NameId;

/// Thread and name. perf calls it so, and shows threads.
pub(super) const PID: Key = Key {
    name: "pid",
    aliases: &[],
    title: "Pid:Command",
    needs: Needs::NONE,
    value: |_, group| u64::from(group.tid.cast_unsigned()) << 32 | u64::from(group.comm.0),
    text: |profile, value, _| {
        format!("{:>5}:{}", ((value >> 32) as u32).cast_signed(), profile.text(NameId(value as u32)))
    },
};

/// The process: its thread group's number.
pub(super) const TGID: Key = Key {
    name: "tgid",
    aliases: &[],
    title: "Tgid",
    needs: Needs::NONE,
    value: |_, group| u64::from(group.pid.cast_unsigned()),
    text: |_, value, _| (value as u32).cast_signed().to_string(),
};

pub(super) const COMM: Key = Key {
    name: "comm",
    aliases: &[],
    title: "Command",
    needs: Needs::NONE,
    value: |_, group| group.comm.0.into(),
    text: |profile, value, _| profile.text(NameId(value as u32)).to_owned(),
};

pub(super) const CPU: Key = Key {
    name: "cpu",
    aliases: &[],
    title: "CPU",
    needs: Needs::CPUS,
    value: |_, group| key_value(group.cpu.map(|cpu| cpu as usize)),
    text: number,
};

pub(super) const SOCKET: Key = Key {
    name: "socket",
    aliases: &[],
    title: "Socket",
    needs: Needs::CPUS,
    value: |profile, group| {
        let socket = group.cpu.and_then(|cpu| profile.info().sockets.get(cpu as usize));
        key_value(socket.map(|socket| *socket as usize))
    },
    text: number,
};

/// Returns three digits, as perf writes them; −01 where it is not known.
fn number(_: &super::Profile, value: u64, _: &super::Counts) -> String {
    if value == ABSENT { "-01".to_owned() } else { format!("{value:03}") }
}
