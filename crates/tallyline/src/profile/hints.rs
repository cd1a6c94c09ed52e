//! Hints for recordings without samples and programs without debug information.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::{Command, Stdio};
use tallyline_perf_data::spaces::{Dso, DsoId, DsoKind};
use tallyline_report::operand::{Outcome, Reason};
use tallyline_report::{Filter, Profile, RecordingInfo};
use tallyline_support::output::printable;

/// The number of files that hints are given for.
const FILES: usize = 3;

/// Files with a smaller share of the samples, in percent, are not worth a hint.
const SHARE: u64 = 1;

/// Says what to do about a recording without samples.
pub(super) fn no_samples(info: &RecordingInfo) -> String {
    if info.lost > 0 {
        return format!(
            "no samples, and {} were lost; record less often (-F 100) or with larger rings (--ring-size 8M)",
            info.lost
        );
    }
    let names: Vec<_> = info.events.iter().map(|event| printable(event.name.as_bytes())).collect();
    let of = if names.is_empty() { String::new() } else { format!(" of {}", names.join(", ")) };
    format!(
        "no samples{of}: the program may have ended, or waited, before the first; record it for longer or more often \
         (tallyline record -F 20000), with the kernel's code, or by the clock (-e cpu-clock) where the machine does not \
         count that event, as virtual ones mostly do not"
    )
}

/// Returns the files with untyped samples for which `lacks` is true, each with the number of those samples, those with
/// the most first; files with few of all samples are left out.
fn lacking(profile: &Profile, filter: &Filter, lacks: impl Fn(DsoId, Reason) -> bool) -> Vec<(DsoId, u64)> {
    let (mut lacking, mut all) = (HashMap::new(), 0);
    for point in profile.groups().iter().filter(|point| filter.accepts(profile, point)) {
        all += point.samples;
        if let (Outcome::Untyped(reason), Some(dso)) =
            (profile.outcome(point), profile.place(point.charged).dso)
            && lacks(dso, *reason)
        {
            *lacking.entry(dso).or_insert(0_u64) += point.samples;
        }
    }
    let mut lacking: Vec<(DsoId, u64)> =
        lacking.into_iter().filter(|(_, samples)| samples.saturating_mul(100) >= all * SHARE).collect();
    lacking.sort_unstable_by_key(|(dso, samples)| (std::cmp::Reverse(*samples), *dso));
    lacking
}

/// Returns a line for each machine with samples whose code is not decoded, so that they have no types.
pub(crate) fn undecoded(profile: &Profile, filter: &Filter) -> Vec<String> {
    let machine = |dso| profile.program(dso)?.image().undecoded();
    let mut machines: BTreeMap<String, (u64, Vec<String>)> = BTreeMap::new();
    for (dso, samples) in lacking(profile, filter, |dso, _| machine(dso).is_some()) {
        let (all, names) = machines.entry(machine(dso).unwrap_or_default()).or_default();
        *all += samples;
        names.push(printable(profile.dso_name(Some(dso)).as_bytes()).into_owned());
    }
    let line = |(machine, (samples, mut names)): (String, (u64, Vec<String>))| {
        let more = if names.len() > FILES { ", ..." } else { "" };
        names.truncate(FILES);
        format!(
            "{samples} samples in {}{more}: code of {machine} is not decoded; functions and lines are known",
            names.join(", ")
        )
    };
    machines.into_iter().map(line).collect()
}

/// Returns hints, one in a line, on how to get debug information for the files with the most samples that lack it.
pub(crate) fn debug_information(profile: &Profile, filter: &Filter) -> Vec<String> {
    let mut lacking = lacking(profile, filter, |_, reason| reason == Reason::NoDebugInfo);
    lacking.truncate(FILES);
    let files: Vec<(&Dso, u64, bool)> = lacking
        .iter()
        .filter_map(|(dso, samples)| {
            let program = profile.program(*dso)?;
            Some((profile.dso(*dso)?, *samples, program.debug().is_some()))
        })
        .collect();
    let asked: Vec<&str> =
        files.iter().filter(|(.., has_debug)| !has_debug).map(|(dso, ..)| dso.path()).collect();
    let packages = packages(&asked);
    let hint = |(dso, samples, has_debug): &(&Dso, u64, bool)| {
        let name = printable(dso.path().as_bytes());
        let advice = match dso.kind() {
            _ if *has_debug => {
                "that part of it was compiled without -g; compile all of it with -g".to_owned()
            }
            DsoKind::Kernel => {
                "name the kernel's file with debug information: --vmlinux (Debian: the package \
                                linux-image-$(uname -r)-dbg)"
                    .to_owned()
            }
            _ => advice(packages.get(dso.path()).map(String::as_str), build_id(profile, dso)),
        };
        format!("{samples} samples in {name}: {advice}")
    };
    files.iter().map(hint).collect()
}

/// Returns the build-id that a file has, or had when it was recorded, in hexadecimal digits.
fn build_id(profile: &Profile, dso: &Dso) -> Option<String> {
    let recorded = dso.build_id().map(|id| id.to_string());
    recorded.or_else(|| {
        let index = profile.dsos().iter().position(|other| std::ptr::eq(other, dso))?;
        let program = profile.program(DsoId::from_position(index)?)?;
        Some(program.image().build_id()?.iter().map(|byte| format!("{byte:02x}")).collect())
    })
}

/// Returns a hint on how to get the debug information of a packaged or a locally built file.
fn advice(package: Option<&str>, build_id: Option<String>) -> String {
    let fetched = "let debuginfod fetch it (DEBUGINFOD_URLS=https://debuginfod.elfutils.org)";
    let build = build_id.as_deref().map_or_else(String::new, |id| format!(", build-id {id}"));
    match (package, &build_id) {
        (Some(package), Some(_)) => format!("install {package}, or {fetched}{build}"),
        (Some(package), None) => format!("install {package}"),
        (None, Some(_)) => format!(
            "compile it with -g; if it was stripped, put its debug file where it is looked for \
             (TALLYLINE_DEBUG_FOLDER, --symfs), or {fetched}{build}"
        ),
        (None, None) => "compile it with -g".to_owned(),
    }
}

/// Returns the packages with the debug information of some files, as far as the package manager knows those.
fn packages(paths: &[&str]) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let real: Vec<&str> = paths
        .iter()
        .copied()
        .filter(|path| {
            path.starts_with('/') && !path.contains(['*', '?', '[', '\\']) && Path::new(path).is_file()
        })
        .collect();
    if real.is_empty() {
        return found;
    }
    // where /lib is a link to /usr/lib, packages may have either
    let either: Vec<String> = real
        .iter()
        .flat_map(|path| {
            let other = path.strip_prefix("/usr").map_or_else(|| format!("/usr{path}"), str::to_owned);
            [(*path).to_owned(), other]
        })
        .collect();
    if let Some(text) = output(Command::new("dpkg-query").arg("--search").args(&either)) {
        for (package, path) in text.lines().filter_map(|line| line.split_once(": ")) {
            let is_it = |asked: &&&str| {
                path == **asked
                    || path.strip_prefix("/usr").unwrap_or(path)
                        == asked.strip_prefix("/usr").unwrap_or(asked)
            };
            let package = package.split([':', ',']).next().unwrap_or(package);
            if let Some(path) = real.iter().find(is_it) {
                found.insert((*path).to_owned(), debug_package(package));
            }
        }
    } else if let Some(text) = output(Command::new("rpm").args(["-qf", "--qf", "%{NAME}\n"]).args(&real)) {
        for (path, package) in real.iter().zip(text.lines()).filter(|(_, package)| !package.contains(' ')) {
            found
                .insert((*path).to_owned(), format!("{package}-debuginfo (dnf debuginfo-install {package})"));
        }
    }
    found
}

/// Returns the Debian package with the debug information of another package.
fn debug_package(package: &str) -> String {
    match package {
        // older than the packages that are made by themselves
        "libc6" => "libc6-dbg".to_owned(),
        package => format!("{package}-dbgsym"),
    }
}

/// Returns a command's output; none if the command is missing or prints nothing.
fn output(command: &mut Command) -> Option<String> {
    let output = command.env("LC_ALL", "C").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    // one file of several that is of no package is a failure for them
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_the_package_the_server_and_the_build() {
        let text = advice(Some("libc6-dbg"), Some("ab12".to_owned()));
        assert!(text.starts_with("install libc6-dbg, or "), "{text}");
        assert!(text.contains("DEBUGINFOD_URLS=https://") && text.ends_with("build-id ab12"), "{text}");
        assert!(advice(None, Some("ab12".to_owned())).contains("-g"));
        assert_eq!(advice(None, None), "compile it with -g");
    }

    #[test]
    fn a_file_of_no_package_has_none_and_one_of_the_system_has_its_own() {
        assert!(packages(&["/no/such/file", "relative"]).is_empty());
        let shell = "/bin/sh";
        if let Some(package) = packages(&[shell]).get(shell) {
            assert!(package.contains("-dbg") || package.contains("-debuginfo"), "{package}");
        }
    }

    #[test]
    fn a_recording_without_samples_says_what_to_do() {
        let mut lost = RecordingInfo::default();
        lost.lost = 7;
        assert!(no_samples(&lost).contains("7 were lost") && no_samples(&lost).contains("--ring-size"));
        assert!(no_samples(&RecordingInfo::default()).contains("-e cpu-clock"));
    }
}
