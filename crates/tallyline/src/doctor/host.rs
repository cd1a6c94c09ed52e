//! The checks of `tallyline doctor`.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tallyline_perf_data::recorder::SamplingInterrupts;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// A feature that works on this machine.
    Works,
    /// A feature that works in part.
    Limited,
    /// A feature that does not work on this machine.
    Missing,
}

/// A check with its result.
#[derive(Debug)]
pub(super) struct Finding {
    /// The name of what was checked.
    pub(super) name: &'static str,
    pub(super) status: Status,
    /// The observation and its consequence.
    pub(super) found: String,
    /// The advice; empty if nothing is to be done.
    pub(super) advice: String,
}

fn finding(name: &'static str, status: Status, found: impl Into<String>, advice: &str) -> Finding {
    Finding { name, status, found: found.into(), advice: advice.into() }
}

/// The machine as the checks see it.
pub(super) struct Host {
    /// The root of `/proc` and `/sys`.
    pub(super) root: PathBuf,
    /// The folders that are searched for programs: the variable PATH.
    pub(super) programs: Vec<PathBuf>,
    /// The value of the variable DEBUGINFOD_URLS; none if it is unset or empty.
    pub(super) debuginfod_urls: Option<OsString>,
    /// The C compiler: the variable CC, or `cc`.
    pub(super) compiler: OsString,
    /// The reason why counters are atomic; none if they are updated per CPU.
    pub(super) fallback: Option<String>,
    /// The error of an attempt to sample this thread; none if that works.
    pub(super) refusal: Option<String>,
}

impl Host {
    /// Returns the machine that the program runs on.
    pub(super) fn here() -> Host {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Host {
            root: "/".into(),
            programs: variable("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default(),
            debuginfod_urls: variable("DEBUGINFOD_URLS"),
            compiler: variable("CC").unwrap_or_else(|| "cc".into()),
            fallback: match (statctr::fallback_reason(), statctr::thread_mode()) {
                (Some(reason), _) => Some(reason.to_string()),
                (None, statctr::Mode::Rseq) => None,
                (None, _) => Some("this thread is not registered for rseq".into()),
            },
            refusal: SamplingInterrupts::start(&[], 1).err().map(|error| error.to_string()),
        }
    }

    /// Runs all checks of the machine, and returns their results.
    pub(super) fn check(&self) -> Vec<Finding> {
        vec![
            self.rseq(),
            self.hardware_events(),
            self.permission(),
            self.btf(),
            self.debuginfod(),
            self.emulator(),
            self.compiler(),
        ]
    }

    fn text(&self, path: &str) -> Option<String> {
        Some(std::fs::read_to_string(self.root.join(path)).ok()?.trim().to_string())
    }

    fn program(&self, name: &Path) -> Option<PathBuf> {
        let is_program = |path: &PathBuf| {
            path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        if name.components().count() > 1 {
            return Some(name.to_path_buf()).filter(is_program);
        }
        self.programs.iter().map(|folder| folder.join(name)).find(is_program)
    }

    fn rseq(&self) -> Finding {
        match &self.fallback {
            None => finding(
                "rseq",
                Status::Works,
                "counters are updated per CPU, without atomic instructions",
                "",
            ),
            Some(reason) => finding(
                "rseq",
                Status::Limited,
                format!("counters are exact, and atomic: {reason}"),
                "glibc 2.35 or later registers threads, and elsewhere statctr does, unless STATCTR_REGISTER is 0, a \
                 sandbox refuses, or an allocator has registered an area that it does not show",
            ),
        }
    }

    /// Checks for hardware events by the kernel's list of PMUs: `cpu`, `cpu_core` and `cpu_atom`, or Arm's.
    fn hardware_events(&self) -> Finding {
        let name = "hardware events";
        let devices = std::fs::read_dir(self.root.join("sys/bus/event_source/devices"));
        let mut devices: Vec<String> = devices
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .collect();
        devices.sort();
        let is_core = |device: &&String| {
            ["cpu", "cpu_core", "cpu_atom"].contains(&device.as_str()) || device.starts_with("armv")
        };
        let is_memory = |device: &&String| *device == "ibs_op" || device.starts_with("arm_spe_");
        let cores: Vec<&String> = devices.iter().filter(is_core).collect();
        let memory = devices.iter().find(is_memory).cloned();
        // Intel samples addresses of loads by an event of its core PMU
        let loads = cores.iter().find(|core| {
            self.root.join(format!("sys/bus/event_source/devices/{core}/events/mem-loads")).exists()
        });
        match (cores.first(), memory.or_else(|| loads.map(|core| format!("{core}/mem-loads/")))) {
            (None, _) => finding(
                name,
                Status::Missing,
                "no PMU: `record` samples by the clock, and charges samples to the accesses that stalled",
                "on a virtual machine ask for a type with a PMU; `record --trace` writes down every access without one",
            ),
            (Some(core), None) => finding(
                name,
                Status::Limited,
                format!(
                    "{core} counts cycles; no sampling of memory accesses: no data addresses and sources"
                ),
                "`record --trace` writes down every access",
            ),
            (Some(core), Some(memory)) => {
                finding(name, Status::Works, format!("{core}, and memory accesses by {memory}"), "")
            }
        }
    }

    /// Returns the right to record, by the effective capabilities, the kernel's setting, and an attempt.
    fn permission(&self) -> Finding {
        let permitted = self.permitted();
        match &self.refusal {
            // in a container of podman 4.3 its seccomp profile refuses, whatever the setting and the capabilities are
            Some(error) if permitted.status != Status::Missing => finding(
                permitted.name,
                Status::Missing,
                format!("{}, and the attempt fails: {error}", permitted.found),
                "in a container: start it with the capability PERFMON and a seccomp profile that permits \
                 perf_event_open; `record --trace` needs neither",
            ),
            _ => permitted,
        }
    }

    /// Returns the right to record by the effective capabilities and the kernel's setting.
    fn permitted(&self) -> Finding {
        const PERFMON: u32 = 38;
        const SYS_ADMIN: u32 = 21;
        let name = "permission";
        let status = self.text("proc/self/status").unwrap_or_default();
        let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let capabilities = capabilities.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
        let Some(text) = self.text("proc/sys/kernel/perf_event_paranoid") else {
            return finding(
                name,
                Status::Missing,
                "no kernel.perf_event_paranoid: this kernel has no perf events, or /proc is not mounted",
                "`record --trace` needs none",
            );
        };
        let setting = format!("kernel.perf_event_paranoid = {text}");
        if capabilities & (1 << PERFMON | 1 << SYS_ADMIN) != 0 {
            return finding(
                name,
                Status::Works,
                format!("may record everything ({setting}, privileged)"),
                "",
            );
        }
        match text.parse::<i32>() {
            Ok(..=0) => finding(name, Status::Works, format!("may record everything ({setting})"), ""),
            Ok(1) => finding(
                name,
                Status::Works,
                format!("may record own programs and the kernel for them ({setting})"),
                "",
            ),
            Ok(2) => finding(
                name,
                Status::Limited,
                format!("may record own programs, without the kernel ({setting})"),
                "as root: sysctl kernel.perf_event_paranoid=1, or the capability PERFMON",
            ),
            _ => finding(
                name,
                Status::Missing,
                format!("may not record ({setting})"),
                "as root: sysctl kernel.perf_event_paranoid=2, or the capability PERFMON; `record --trace` needs neither",
            ),
        }
    }

    fn btf(&self) -> Finding {
        let path = self.root.join("sys/kernel/btf/vmlinux");
        match std::fs::File::open(&path) {
            Ok(_) => finding("BTF", Status::Works, "types of the running kernel can be read", ""),
            Err(error) => finding(
                "BTF",
                Status::Missing,
                format!("types of the running kernel cannot be read: /sys/kernel/btf/vmlinux: {error}"),
                "name a vmlinux with debug information; kernels with CONFIG_DEBUG_INFO_BTF have BTF",
            ),
        }
    }

    fn debuginfod(&self) -> Finding {
        let name = "debuginfod";
        let install = "install debuginfod-find (Debian: apt install debuginfod)";
        match (&self.debuginfod_urls, self.program(Path::new("debuginfod-find"))) {
            (Some(_), Some(_)) => {
                finding(name, Status::Works, "debug files that are not installed are fetched", "")
            }
            (Some(_), None) => finding(
                name,
                Status::Missing,
                "DEBUGINFOD_URLS is set, and there is no debuginfod-find",
                install,
            ),
            (None, client) => finding(
                name,
                Status::Limited,
                "debug files are read where they are installed, and not fetched: DEBUGINFOD_URLS is not set",
                &match client {
                    Some(_) => "set DEBUGINFOD_URLS to your distribution's server".to_string(),
                    None => format!("{install}, and set DEBUGINFOD_URLS to your distribution's server"),
                },
            ),
        }
    }

    fn emulator(&self) -> Finding {
        let name = format!("qemu-{}", std::env::consts::ARCH);
        match self.program(Path::new(&name)) {
            Some(path) => finding(
                "QEMU",
                Status::Works,
                format!("`record --trace` runs programs by {}", path.display()),
                "",
            ),
            None => finding(
                "QEMU",
                Status::Missing,
                format!("no {name}: `record --trace` cannot run programs"),
                "install QEMU's user-mode emulation (Debian: apt install qemu-user)",
            ),
        }
    }

    fn compiler(&self) -> Finding {
        let (name, compiler) = ("plugin compiler", self.compiler.display());
        match self.program(Path::new(&self.compiler)) {
            Some(path) => finding(
                name,
                Status::Works,
                format!(
                    "{} builds the plugin of `record --trace`, and checks `reorganize --verify`",
                    path.display()
                ),
                "",
            ),
            None => finding(
                name,
                Status::Missing,
                format!("no C compiler {compiler}: no plugin for `record --trace`, no `reorganize --verify`"),
                "install one (Debian: apt install gcc libc6-dev), or name it in CC",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Returns a machine of files in a new folder.
    fn host(name: &str, files: &[(&str, &str)]) -> Host {
        let root = std::env::temp_dir().join(format!("tallyline-doctor-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
        }
        let programs = vec![root.join("bin")];
        Host {
            root,
            programs,
            debuginfod_urls: None,
            compiler: "cc".into(),
            fallback: Some("none".into()),
            refusal: None,
        }
    }

    fn statuses(host: &Host) -> Vec<Status> {
        let found = host.check();
        for one in &found {
            assert_eq!(one.advice.is_empty(), one.status == Status::Works, "{one:?}");
        }
        let _ = fs::remove_dir_all(&host.root);
        found.iter().map(|one| one.status).collect()
    }

    #[test]
    fn a_machine_with_everything_works() {
        let qemu = format!("bin/qemu-{}", std::env::consts::ARCH);
        let mut host = host(
            "all",
            &[
                ("sys/bus/event_source/devices/cpu/type", "4"),
                ("sys/bus/event_source/devices/ibs_op/type", "9"),
                ("proc/sys/kernel/perf_event_paranoid", "1\n"),
                ("sys/kernel/btf/vmlinux", ""),
                ("bin/debuginfod-find", ""),
                ("bin/cc", ""),
                (&qemu, ""),
            ],
        );
        host.fallback = None;
        host.debuginfod_urls = Some("https://example.org".into());
        assert_eq!(statuses(&host), [Status::Works; 7]);
    }

    #[test]
    fn a_machine_without_anything_says_what_to_do() {
        use Status::{Limited, Missing};
        let expected = [Limited, Missing, Missing, Missing, Limited, Missing, Missing];
        assert_eq!(statuses(&host("none", &[])), expected);
    }

    #[test]
    fn permission_is_that_of_the_setting_and_the_capabilities() {
        let of = |name: &str, setting: &str, capabilities: &str| {
            let status = format!("Name:\tx\nCapEff:\t{capabilities}\n");
            let host = host(
                name,
                &[("proc/sys/kernel/perf_event_paranoid", setting), ("proc/self/status", &status)],
            );
            let status = host.permission().status;
            let _ = fs::remove_dir_all(&host.root);
            status
        };
        assert_eq!(of("paranoid-2", "2\n", "0"), Status::Limited);
        assert_eq!(of("paranoid-4", "4\n", "0"), Status::Missing);
        assert_eq!(of("paranoid-m1", "-1\n", "0"), Status::Works);
        assert_eq!(of("perfmon", "4\n", "0000004000000000"), Status::Works);
        assert_eq!(of("odd", "no number\n", "no number"), Status::Missing);
    }

    #[test]
    fn permission_that_only_the_setting_gives_is_none() {
        let mut host = host("refused", &[("proc/sys/kernel/perf_event_paranoid", "-1\n")]);
        host.refusal = Some("Operation not permitted (os error 1)".into());
        let found = host.permission();
        let _ = fs::remove_dir_all(&host.root);
        assert_eq!(found.status, Status::Missing);
        assert!(found.found.contains("= -1), and the attempt fails: Operation not permitted"), "{found:?}");
        assert!(found.advice.contains("seccomp"), "{found:?}");
    }
}
