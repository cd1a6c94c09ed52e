//! Programs that lock their memory (`mlockall`): what is reserved and not used takes none.
//!
//! Each test runs itself again in a process of its own, since a lock is for all of a process.

#![allow(unsafe_code)] // mlockall

mod common;

use common::os;
use statctr::topology::{CpuId, Topology};
use statctr::{Combine, Counter, Group, ItemSpec, LazyPool, PerCpu, Placement, Pool, Schema};

const LOCK_ALL: libc::c_int = libc::MCL_CURRENT | libc::MCL_FUTURE;

fn lock(flags: libc::c_int) {
    // SAFETY: changes no memory's content.
    let result = unsafe { libc::mlockall(flags) };
    assert_eq!(result, 0, "mlockall: {}", std::io::Error::last_os_error());
}

/// Returns `true` if this process may lock as much as the tests reserve; says so where it may not.
fn may_lock() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes a limit; the other call takes nothing.
    let (asked, root) =
        unsafe { (libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) == 0, libc::geteuid() == 0) };
    let may = root || (asked && limit.rlim_cur >= 1 << 30);
    if !may {
        println!("skipped: neither root nor RLIMIT_MEMLOCK of 1 GiB");
    }
    may
}

/// Returns the number of bytes of memory that this process has, by the kernel's account.
fn resident() -> usize {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").expect("smaps_rollup");
    let line = rollup.lines().find_map(|line| line.strip_prefix("Rss:")).expect("Rss");
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().expect("a number") << 10
}

/// Returns the memory that `make` adds to this process, measured while its result lives.
fn added<R>(make: impl FnOnce() -> R) -> (usize, R) {
    let before = resident();
    let made = make();
    (resident().saturating_sub(before), made)
}

fn large_machine() -> Topology {
    Topology::synthetic(192).build().expect("topology")
}

fn pool(placement: Placement) -> Pool {
    Pool::builder().topology(large_machine()).placement(placement).build().expect("pool")
}

const ENOUGH: usize = 100_000;

fn again(name: &str) {
    if may_lock() {
        os::expect_child(&os::this_test(name), &[]);
    }
}

/// Makes and uses a counter of each placement and a lazy object: none takes more than 100 kB.
fn each_takes_little() {
    // what the process needs at its first counter is not the counter's
    let warm = Counter::new_in(&pool(Placement::Fixed), 0).expect("counter");
    warm.inc();
    assert_eq!((warm.read(), resident() > 0), (1, true));
    for placement in [Placement::Fixed, Placement::Flexible] {
        let start = std::time::Instant::now();
        let (bytes, (counter, pool)) = added(|| {
            let pool = pool(placement);
            let counter = Counter::new_in(&pool, 0).expect("counter");
            counter.inc();
            (counter, pool)
        });
        assert_eq!(counter.read(), 1);
        let own = pool.memory().expect("smaps").resident;
        println!("{placement:?}: {bytes} bytes, {own} of them the pool's; {:?}", start.elapsed());
        assert!(bytes <= ENOUGH && own <= ENOUGH && own > 0, "{placement:?}: {bytes} {own}");
    }
    let (bytes, (flow, pool)) = added(|| {
        let pool =
            LazyPool::<PerCpu>::builder([Combine::Sum; 4]).topology(large_machine()).build().expect("pool");
        let flow = pool.create().expect("flow");
        flow.update([1, 2, 3, 4]);
        (flow, pool)
    });
    assert_eq!(flow.read(), [1, 2, 3, 4]);
    let own = pool.memory().expect("smaps").resident;
    println!("lazy: {bytes} bytes, {own} of them the pool's");
    assert!(bytes <= ENOUGH && own <= ENOUGH && own > 0, "lazy: {bytes} {own}");
}

#[test]
fn without_mlockall_only_used_memory_is_resident() {
    // in a process of its own, as others make memory, too
    if os::is_child() {
        return each_takes_little();
    }
    os::expect_child(&os::this_test("without_mlockall_only_used_memory_is_resident"), &[]);
}

#[test]
fn under_mlockall_only_used_memory_is_resident() {
    if os::is_child() {
        lock(LOCK_ALL);
        return each_takes_little();
    }
    again("under_mlockall_only_used_memory_is_resident");
}

#[test]
fn mlockall_between_a_pool_and_its_first_counter_costs_nothing() {
    if os::is_child() {
        let pool = pool(Placement::Fixed);
        lock(LOCK_ALL);
        let (bytes, counter) = added(|| Counter::new_in(&pool, 0).expect("counter"));
        counter.inc();
        assert_eq!(counter.read(), 1);
        assert!(bytes <= ENOUGH, "{bytes}");
        return;
    }
    again("mlockall_between_a_pool_and_its_first_counter_costs_nothing");
}

/// Locks memory after a counter was made, as by a constructor that runs before `main`.
#[test]
fn mlockall_after_the_first_counter_populates_little() {
    if os::is_child() {
        let cpus = os::cpus();
        let made = [Placement::Fixed, Placement::Flexible].map(|placement| {
            let pool = pool(placement);
            let counter = Counter::new_in(&pool, 5).expect("counter");
            counter.inc();
            (placement, pool, counter)
        });
        lock(LOCK_ALL);
        for (placement, pool, counter) in &made {
            let own = pool.memory().expect("smaps").resident;
            println!("{placement:?}: {own} bytes");
            assert!(own <= ENOUGH && own > 0, "{placement:?}: {own}");
            // and it goes on, on other CPUs and with more counters than there was room for
            let more: Vec<_> = (0..10_000).map(|_| Counter::new_in(pool, 7).expect("counter")).collect();
            for &cpu in &cpus {
                os::pin(0, &[cpu]);
                counter.inc();
                more.iter().for_each(Counter::inc);
                // a flexible pool's block goes, and comes back elsewhere
                pool.drain(CpuId::new(cpu as u32)).expect("drained");
                more.iter().for_each(Counter::inc);
            }
            for cpu in [64, 191] {
                more.iter().for_each(|counter| {
                    counter.add_on_synthetic(CpuId::new(cpu), 1).expect("a synthetic CPU")
                });
            }
            let turns = cpus.len() as u64;
            assert_eq!(counter.read(), 6 + turns);
            assert!(more.iter().all(|counter| counter.read() == 7 + 2 * turns + 2));
            let all = pool.memory().expect("smaps").resident;
            // of 80 kB each: home words, baselines, two residues, two synthetic CPUs, and those here
            assert!(all < (8 + cpus.len()) * 140_000, "{placement:?}: {all}");
        }
        return;
    }
    again("mlockall_after_the_first_counter_populates_little");
}

/// Parts that may be written and parts that may not are mappings of their own to the kernel, of which
/// a process may have some 65 000. 32 bits have no addresses for so many pools.
#[cfg(target_pointer_width = "64")]
#[test]
fn many_pools_leave_mappings_for_others() {
    if os::is_child() {
        let mappings = || {
            let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
            maps.lines().count()
        };
        let before = mappings();
        let made: Vec<_> = (0..150)
            .map(|_| {
                let pool = pool(Placement::Fixed);
                (Counter::new_in(&pool, 0).expect("counter"), pool)
            })
            .collect();
        // of several words, as every CPU of a large machine counts
        let strangers: Vec<_> = (64..192).map(CpuId::new).collect();
        for (counter, _) in &made {
            strangers.iter().for_each(|&cpu| counter.add_on_synthetic(cpu, 1).expect("a synthetic CPU"));
            counter.inc();
        }
        assert!(made.iter().all(|(counter, _)| counter.read() == 129));
        let most = mappings();
        println!("{before} mappings, then {most}");
        assert!(most < before + 20_000, "{most}");
        drop(made);
        assert!(mappings() < before + 100);
        // what was given back serves the next ones
        let (bytes, _kept) = added(|| Counter::new_in(&pool(Placement::Fixed), 0).expect("counter"));
        assert!(bytes <= ENOUGH, "{bytes}");
        return;
    }
    os::expect_child(&os::this_test("many_pools_leave_mappings_for_others"), &[]);
}

#[test]
fn locked_memory_is_locked_and_given_back() {
    if os::is_child() {
        lock(LOCK_ALL);
        let pool = Pool::builder().placement(Placement::Fixed).build().expect("pool");
        let items: Vec<_> = (0..8).map(|item| ItemSpec::new(format!("item{item}"))).collect();
        let schema = Schema::new(items, &[]).expect("schema");
        let groups: Vec<_> = (0..2000).map(|_| Group::new_in(&pool, &schema).expect("group")).collect();
        let item = schema.item(0).expect("an item");
        groups.iter().for_each(|group| group.inc(item));
        let smaps = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
        let locked = |part: &str| {
            let line = part.lines().find_map(|line| line.strip_prefix("Locked:"));
            line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok())
        };
        let ours = smaps.split("[anon:statctr]").skip(1).filter_map(locked).max();
        // kernels without names for mappings show none
        assert!(ours.is_none_or(|kilobytes| kilobytes >= 128), "{ours:?}");
        let before = pool.memory().expect("smaps").resident;
        drop(groups);
        let trimmed = pool.trim().expect("trimmed");
        assert!(trimmed.chunks >= 2000, "{trimmed:?}");
        let after = pool.memory().expect("smaps").resident;
        println!("{before} bytes, then {after}");
        let fresh = Group::new_in(&pool, &schema).expect("group");
        assert_eq!(fresh.read(), [0; 8]);
        // the kernel gives locked pages back from 5.18 on
        assert!(after <= before);
        return;
    }
    again("locked_memory_is_locked_and_given_back");
}

/// Reads all entries. A process that is restored elsewhere may find itself on any CPU: its sections
/// load that entry.
#[test]
fn tables_have_entries_for_8192_cpus() {
    for placement in [Placement::Fixed, Placement::Flexible] {
        let counter = Counter::new_in(&pool(placement), 0).expect("counter");
        counter.inc();
        let raw = statctr::raw::RawCounter::from_counter(counter);
        let entries = std::ptr::with_exposed_provenance::<usize>(raw.table & !63);
        for cpu in [192, 1023, 4096, 8191] {
            // SAFETY: an entry of the table, which lives as long as the counter.
            assert_eq!(unsafe { entries.add(cpu).read_volatile() }, 0, "{placement:?}, CPU {cpu}");
        }
        // SAFETY: made above, taken back once.
        assert_eq!(unsafe { raw.into_counter() }.map(|counter| counter.read()), Some(1));
    }
}

#[test]
fn drains_under_mlockall_are_exact() {
    if os::is_child() {
        lock(LOCK_ALL);
        let pool = Pool::builder().placement(Placement::Flexible).unit_bytes(8192).build().expect("pool");
        let counters: Vec<_> = (0..100).map(|_| Counter::new_in(&pool, 0).expect("counter")).collect();
        for round in 1..=20 {
            counters.iter().for_each(Counter::inc);
            for cpu in os::cpus() {
                pool.drain(CpuId::new(cpu as u32)).expect("drained");
            }
            assert!(counters.iter().all(|counter| counter.read() == round));
        }
        return;
    }
    again("drains_under_mlockall_are_exact");
}
