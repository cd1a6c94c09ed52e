//! Pools that ask for huge pages: where the kernel gives them, what they cost, and that nothing is lost.

#![allow(unsafe_code)] // mmap, setrlimit
#![cfg(all(
    target_os = "linux",
    target_arch = "x86_64",
    not(feature = "portable"),
    not(feature = "uniprocessor")
))]

mod common;

use common::os;
use statctr::topology::{CpuId, Topology};
use statctr::{Counter, Error, GroupArray, ItemSpec, Placement, Pool, Schema};

const HUGE_PAGE: usize = 2 << 20;

/// Returns the bytes in huge pages of mappings that these were asked for.
fn in_huge_pages() -> usize {
    let text = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
    let (mut of_mapping, mut bytes) = (0, 0);
    for line in text.lines() {
        if let Some(size) = line.strip_prefix("AnonHugePages:") {
            of_mapping = 1024 * size.trim().trim_end_matches(" kB").parse::<usize>().expect("a number");
        } else if let Some(flags) = line.strip_prefix("VmFlags:") {
            // the last line of a mapping; names of mappings are not in each kernel
            bytes += if flags.split_whitespace().any(|flag| flag == "hg") { of_mapping } else { 0 };
        }
    }
    bytes
}

/// Returns `true` if the kernel gives a huge page to a mapping of the test's own: there are several settings for all of
/// the system, one of the process (`PR_SET_THP_DISABLE`), and filters of system calls.
fn kernel_gives_huge_pages() -> bool {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: fresh memory, of which a byte is written that lies inside, and that nobody has afterwards.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), 2 * HUGE_PAGE, access, kind, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        libc::madvise(start, 2 * HUGE_PAGE, libc::MADV_HUGEPAGE);
        let aligned = start.addr().next_multiple_of(HUGE_PAGE);
        start.with_addr(aligned).cast::<u8>().write_volatile(1);
        let gives = in_huge_pages() > 0;
        libc::munmap(start, 2 * HUGE_PAGE);
        gives
    }
}

fn pool(cpus: u32) -> Pool {
    let topology = Topology::synthetic(cpus).build().expect("topology");
    Pool::builder().topology(topology).huge_pages(true).build().expect("pool")
}

// one test, as the others' memory would be counted, too
#[test]
fn a_cpu_that_counts_has_huge_pages_of_its_own_and_keeps_them() {
    let gives = kernel_gives_huge_pages();
    let pool = pool(192);
    let cost = pool.cost();
    assert!(cost.unit_bytes > HUGE_PAGE / 2 && cost.unit_bytes.is_multiple_of(4096), "{cost:?}");
    assert_eq!(cost.stride % HUGE_PAGE, 5 * 64, "{cost:?}");
    let schema = Schema::new((0..36).map(|item| ItemSpec::new(format!("item{item}"))), &[]).expect("schema");
    let array = GroupArray::new_in(&pool, 3000, &schema).expect("memory");
    assert_eq!(in_huge_pages(), 0, "nobody has counted");
    let first = schema.item(0).expect("an item");
    let cpus: Vec<CpuId> = pool.topology().possible().iter().filter(|cpu| cpu.get() >= 100).take(3).collect();
    for (number, &cpu) in cpus.iter().enumerate() {
        for group in (0..3000).map(|group| array.get(group).expect("a group")) {
            group.add_on_synthetic(cpu, first, 1 + number as u64).expect("synthetic");
        }
        let expected = if gives { (1 + number) * HUGE_PAGE } else { 0 };
        assert_eq!(in_huge_pages(), expected, "CPUs that count: {}", 1 + number);
    }
    let mut values = vec![0; 3000 * 36];
    array.fold_into(&mut values).expect("room");
    assert!(values.chunks(36).all(|group| group[0] == 6 && group[1..].iter().all(|value| *value == 0)));
    // what others left there is made up for by baselines, in huge pages of their own
    let before = in_huge_pages();
    drop(array);
    let again = GroupArray::new_in(&pool, 3000, &schema).expect("memory");
    let expected = if gives { before + HUGE_PAGE } else { 0 };
    assert_eq!(in_huge_pages(), expected);
    again.fold_into(&mut values).expect("room");
    assert!(values.iter().all(|value| *value == 0));
    // less than a huge page of a CPU is made zero, and is not returned: the kernel would divide them
    drop(again);
    pool.trim().expect("nothing is refused");
    assert_eq!(in_huge_pages(), expected);
    let trimmed = GroupArray::new_in(&pool, 3000, &schema).expect("memory");
    trimmed.fold_into(&mut values).expect("room");
    assert!(values.iter().all(|value| *value == 0));
    drop(trimmed);
    let counter = Counter::new_in(&pool, 5).expect("memory");
    counter.inc();
    assert_eq!(counter.read(), 6);
}

#[test]
fn huge_pages_are_refused_where_units_move() {
    let built = Pool::builder().placement(Placement::Flexible).huge_pages(true).build();
    match built {
        Err(Error::BadSetting(reason)) => assert!(reason.contains("do not move"), "{reason}"),
        // where updates are not by rseq its units do not move
        Ok(pool) => assert_eq!(pool.mode(), statctr::Mode::Striped),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_pool_that_finds_no_address_space_for_huge_pages_does_without() {
    if !os::is_child() {
        os::expect_child(
            &os::this_test("a_pool_that_finds_no_address_space_for_huge_pages_does_without"),
            &[],
        );
        return;
    }
    let pool = pool(192);
    assert!(192 * pool.cost().stride > 384 << 20);
    let pages = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: u64 = pages.split(' ').next().and_then(|pages| pages.parse().ok()).expect("a number");
    let limit = libc::rlimit { rlim_cur: (pages * 4096) + (128 << 20), rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the kernel reads a limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    let counter = Counter::new_in(&pool, 0).expect("less address space does");
    counter.add(3);
    for cpu in [100, 191] {
        counter.add_on_synthetic(CpuId::new(cpu), 2).expect("synthetic");
    }
    assert_eq!(counter.read(), 7);
    assert_eq!(in_huge_pages(), 0);
}
