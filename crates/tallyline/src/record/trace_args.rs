//! The options of `tallyline record --trace`.

use clap::Args;
use std::path::PathBuf;

/// Command-line options of `record` for traces of memory accesses under QEMU: one of how many, size,
/// emulator.
#[derive(Debug, Args)]
#[command(next_help_heading = "Traces")]
pub(crate) struct TraceArgs {
    /// Record memory accesses under QEMU's emulation, which needs no hardware counters
    ///
    /// The command is a program for x86-64 or aarch64 (needs Debian's package qemu-user), or an emulator of a whole
    /// machine (qemu-system-…) with its options. Forked processes are traced; other programs that they execute are
    /// not, and are named at the end. There is no rseq under emulation, so programs that rely on it run their
    /// fallback.
    #[arg(long, requires = "command")]
    #[arg(conflicts_with_all = ["pid", "tid", "all_cpus", "events", "all_user", "all_kernel", "call_chains"])]
    #[arg(conflicts_with_all = ["count", "call_graph", "data", "no_inherit", "delay"])]
    pub(super) trace: bool,

    /// Record one of N accesses, at distances between N/2 and 3N/2, as samples that perf can read
    #[arg(long, value_name = "N", requires = "trace", default_value_t = 1, hide_default_value = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    pub(super) every: u64,

    /// Write samples that perf can read even if every access is recorded
    #[arg(long, requires = "trace")]
    pub(super) samples: bool,

    /// The emulator to use instead of the one for the program's machine
    #[arg(long, value_name = "FILE", requires = "trace")]
    pub(super) emulator: Option<PathBuf>,

    /// Address of the kernel symbol _text in a whole machine; without KASLR (nokaslr) it is the linked one
    #[arg(long, value_name = "ADDRESS", requires = "trace", value_parser = address)]
    pub(super) kernel_text: Option<u64>,
}

impl TraceArgs {
    /// Returns `true` if the output is a trace rather than samples.
    pub(super) fn is_whole(&self) -> bool {
        self.trace && self.every == 1 && !self.samples
    }
}

fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| format!("`{text}` is no address: hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hexadecimal() {
        assert_eq!(address("0xffffffff81000000"), Ok(0xffff_ffff_8100_0000));
        assert_eq!(address("ff"), Ok(0xff));
        assert!(address("").is_err() && address("0x").is_err() && address("g").is_err());
    }
}
