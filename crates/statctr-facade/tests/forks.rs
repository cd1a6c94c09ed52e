//! A map of series goes on in a child of `fork`.
#![cfg(unix)]
#![allow(unsafe_code)] // forks, and ends children without their handlers

use statctr_facade::SeriesMap;
use std::sync::Barrier;

fn add(map: &SeriesMap<u64, u64>, key: u64) -> Option<u64> {
    map.get_or_insert(key, |there| *there == key, || (key, key)).copied()
}

#[test]
fn a_child_adds_entries_whatever_a_thread_of_its_parent_was_adding() {
    let map = SeriesMap::new(100);
    let (making, forked) = (Barrier::new(2), Barrier::new(2));
    let status = std::thread::scope(|scope| {
        scope.spawn(|| {
            let make = || {
                making.wait();
                forked.wait();
                (1, 1)
            };
            map.get_or_insert(1, |there| *there == 1, make);
        });
        making.wait();
        // SAFETY: the child uses the map and memory alone, and ends here, by itself or by the signal.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above.
            unsafe { libc::alarm(10) };
            let added = (1..50).all(|key| add(&map, key) == Some(key));
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(!added)) };
        }
        let mut status = -1;
        // SAFETY: there is room for the status.
        let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
        forked.wait();
        (ended == child).then_some(status)
    });
    assert_eq!(status, Some(0), "the child waited for ever, or found no room");
    assert_eq!((add(&map, 1), add(&map, 2), map.len()), (Some(1), Some(2), 2));
}
