//! Containers whose `/sys` and `/proc` say something else than the kernel: counts are exact all the
//! same, and a counter is a plain word only where no source knows of a second CPU.
//!
//! Each test runs itself again in a mount namespace of its own.

mod common;

use common::os;
use statctr::topology::{CpuId, Topology};
use statctr::{Combine, Counter, Error, LazyPool, Mode, PerCpu, Placement, Pool};

/// Returns the command that runs the test `name` again after `setup`, a shell script, in a
/// namespace of its own.
fn again(name: &str, setup: &str) -> Option<Vec<String>> {
    let script = format!("set -e; {setup}\nexec \"$@\"");
    let unshare = |flags: &str| ["unshare", flags].map(str::to_owned).to_vec();
    let in_namespace = ["-rm", "-m"].map(unshare).into_iter().find(|start| {
        let works = [start.clone(), vec!["true".to_owned()]].concat();
        os::starts_well(&works)
    });
    let Some(start) = in_namespace else {
        println!("skipped: neither user namespaces nor root's mount namespaces are to be had here");
        return None;
    };
    Some([start, ["sh", "-c", &script, "sh"].map(str::to_owned).into(), os::this_test(name)].concat())
}

/// Returns a command that puts a file of one line over another.
fn put_over(path: &str, text: &str) -> String {
    format!("f=$(mktemp); printf '{text}\\n' > $f; mount --bind $f {path}; rm $f")
}

const CPU: &str = "/sys/devices/system/cpu";

/// Makes 4 000 000 increments on each of two CPUs, at the same time.
fn count_on_two_cpus(cpus: &[usize], count: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for &cpu in cpus {
            let count = &count;
            scope.spawn(move || {
                assert!(os::pin(0, &[cpu]));
                (0..4_000_000).for_each(|_| count());
            });
        }
    });
}

#[test]
#[cfg(not(feature = "uniprocessor"))]
fn counts_are_exact_where_one_cpu_is_shown_and_the_first_thread_is_pinned() {
    const NAME: &str = "counts_are_exact_where_one_cpu_is_shown_and_the_first_thread_is_pinned";
    let cpus = os::cpus();
    if os::is_child() {
        assert!(os::pin(0, &cpus[..1]));
        let counter = Counter::new(0).expect("counter");
        count_on_two_cpus(&cpus[..2], || counter.inc());
        assert_eq!(counter.read(), 8_000_000, "{:?}", Pool::global());
        return;
    }
    if cpus.len() < 2 {
        println!("skipped: this process may run on one CPU only");
        return;
    }
    let Some(command) = again(NAME, &put_over(&format!("{CPU}/possible"), "0")) else { return };
    os::expect_child(&command, &[]);
}

#[test]
fn each_source_alone_refuses_plain_words() {
    const NAME: &str = "each_source_alone_refuses_plain_words";
    let cpus = os::cpus();
    if os::is_child() {
        // of the threads of this process only this one is pinned, but for the last source
        if std::env::var_os("PIN_ALL").is_some() {
            let threads = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
            let ids = threads.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
            ids.for_each(|thread| assert!(os::pin(thread, &cpus[..1])));
        }
        assert!(os::pin(0, &cpus[..1]));
        // the files alone: the machine that is found without being named has the threads' CPUs, too
        let files = Topology::from_sysfs("/sys".as_ref()).expect("files");
        let builder = Pool::builder().placement(Placement::Uniprocessor);
        assert!(matches!(builder.clone().build(), Err(Error::NotUniprocessor { .. })));
        let refused = builder.topology(files).build();
        let Err(error @ Error::NotUniprocessor { source, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(error.errno(), libc::ENOTSUP);
        assert!(error.to_string().contains(source), "{error}");
        println!("refused by {source};");
        return;
    }
    if cpus.len() < 2 {
        println!("skipped: this process may run on one CPU only");
        return;
    }
    let one = |file: &str| put_over(&format!("{CPU}/{file}"), &cpus[0].to_string());
    let column = put_over("/proc/softirqs", &format!("CPU{}", cpus[0]));
    let line = put_over("/proc/stat", &format!("cpu{} 1 2 3", cpus[0]));
    // each step takes another witness away
    let steps: [(&str, String, &str); 5] = [
        ("", String::new(), "the topology's possible CPUs"),
        ("", [one("possible"), one("present"), one("online")].join("\n"), "/proc/softirqs"),
        ("", column, "/proc/stat"),
        ("", line, "a thread of this process"),
        // `taskset` pins the program as a launcher would; process 1 is out of its hands
        ("PIN_ALL", String::new(), ""),
    ];
    let mut setup = String::new();
    for (variable, more, source) in steps {
        setup = [setup, more].join("\n");
        let Some(command) = again(NAME, &setup) else { return };
        let environment = if variable.is_empty() { vec![] } else { vec![(variable, "1")] };
        let output = os::expect_child(&command, &environment);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("refused by") && text.contains(source), "{source}: {text}");
        println!("{text}");
    }
}

#[test]
#[cfg(not(feature = "uniprocessor"))]
fn counters_are_made_and_exact_without_files() {
    const NAME: &str = "counters_are_made_and_exact_without_files";
    let cpus = os::cpus();
    if os::is_child() {
        assert!(Topology::from_sysfs("/sys".as_ref()).is_err(), "the files are to be away");
        let topology = Topology::current().expect("a topology");
        for &cpu in &cpus {
            assert!(topology.possible().contains(CpuId::new(cpu as u32)));
            assert!(topology.online().contains(CpuId::new(cpu as u32)));
        }
        let counter = Counter::new(5).expect("counter");
        count_on_two_cpus(&cpus[..2.min(cpus.len())], || counter.inc());
        assert_eq!(counter.read(), 5 + 4_000_000 * cpus.len().min(2) as u64);
        if statctr::thread_mode() == Mode::Rseq {
            assert_eq!(Pool::global().expect("pool").mode(), Mode::Rseq);
            let parts: u64 = cpus.iter().map(|&cpu| counter.read_cpu(CpuId::new(cpu as u32))).sum();
            assert_eq!(parts, counter.read() - 5, "all in words of the CPUs' own");
        }
        let flexible = Pool::builder().placement(Placement::Flexible).build().expect("pool");
        let counter = Counter::new_in(&flexible, 0).expect("counter");
        counter.add(3);
        assert_eq!(counter.read(), 3);
        let flows = LazyPool::<PerCpu>::new([Combine::Sum; 4]).expect("pool");
        let flow = flows.create().expect("flow");
        flow.update([1, 2, 3, 4]);
        assert_eq!(flow.read(), [1, 2, 3, 4]);
        let watcher = statctr::hotplug::Watcher::start(vec![flexible]).expect("a watcher");
        drop(watcher);
        return;
    }
    for setup in [
        // no files, as under a sandbox without /sys
        "mount -t tmpfs none /sys".to_owned(),
        // no CPU, and something else than a list
        put_over(&format!("{CPU}/possible"), ""),
        put_over(&format!("{CPU}/possible"), "all of them"),
    ] {
        let Some(command) = again(NAME, &setup) else { return };
        os::expect_child(&command, &[]);
    }
}
