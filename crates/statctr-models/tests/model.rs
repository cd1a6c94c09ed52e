//! Models of the protocols: every interleaving of a few threads, with the abort of a section as a branch. The wrong ways
//! to do it fail, so the models can. They repeat the protocols (the sections are machine code, which no model checker
//! runs) as the comments in `rseq` and `memory` specify them; what they hold is that specification.
#![cfg(target_pointer_width = "64")]

#[path = "model/bounded.rs"]
mod bounded;
#[path = "model/drain.rs"]
mod drain;
#[path = "model/epoch.rs"]
mod epoch;
#[path = "model/latch.rs"]
mod latch;
#[path = "model/machine.rs"]
mod machine;
#[path = "model/maximum.rs"]
mod maximum;
#[path = "model/owned.rs"]
mod owned;
#[path = "model/stamps.rs"]
mod stamps;
#[path = "model/striped_epoch.rs"]
mod striped_epoch;
#[path = "model/table.rs"]
mod table;
#[path = "model/weak.rs"]
mod weak;
#[path = "model/words.rs"]
mod words;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use machine::{CALM, PLANS, Plan, Thread};

/// Returns `true` if there is time for every schedule (`.ci/run --full`), `false` if for a part.
fn is_thorough() -> bool {
    std::env::var_os("STATCTR_MODEL_THOROUGH").is_some()
}

/// Runs a model with up to so many preemptions of its threads: where time is short, and else.
fn explore(quick: usize, thorough: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(if is_thorough() { thorough } else { quick });
    builder.check(model);
}

/// Returns all plans, or a few.
fn plans() -> &'static [Plan] {
    if is_thorough() { &PLANS } else { &PLANS[2..4] }
}

/// Checks two threads that start on one CPU, whose first updates announce it, and a reader.
fn announce_update_read(variant: words::Variant, plans: [Plan; 2]) {
    explore(2, 3, move || {
        // past the mask one that comes too late would not show
        let quickly = is_thorough() && variant == words::Variant::Correct;
        let counter = Arc::new(words::Counter::new(variant, quickly));
        let done = Arc::new(AtomicU64::new(0));
        let writers = plans.map(|plan| {
            let (counter, done) = (Arc::clone(&counter), Arc::clone(&done));
            thread::spawn(move || {
                counter.add(&mut Thread::on(0, plan), 1);
                // handed over
                done.fetch_add(1, Ordering::Release);
            })
        });
        let mut last = 0;
        for _ in 0..2 {
            let handed_over = done.load(Ordering::Acquire);
            let value = counter.read();
            assert!(value >= handed_over, "{value} of {handed_over}: not visible");
            assert!(value >= last, "{value} after {last}: not monotone");
            last = value;
        }
        for writer in writers {
            writer.join().expect("joined");
        }
        assert_eq!(counter.read(), 2, "not exact");
    });
}

#[test]
fn an_update_handed_over_is_read() {
    for &first in plans() {
        announce_update_read(words::Variant::Correct, [first, CALM]);
    }
    if is_thorough() {
        announce_update_read(words::Variant::Correct, [PLANS[2], PLANS[4]]);
    }
}

#[test]
#[should_panic(expected = "not visible")]
fn an_update_is_missed_if_sections_come_before_the_mask() {
    announce_update_read(words::Variant::EntryBeforeMask, [CALM, CALM]);
}

/// Checks a thread in sections and one without a registration, on one CPU.
fn plain_and_atomic(variant: words::Variant, plan: Plan) {
    explore(2, 3, move || {
        let counter = Arc::new(words::Counter::new(variant, true));
        let registered = {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                let mut thread = Thread::on(0, plan);
                counter.add(&mut thread, 1);
                counter.add(&mut thread, 1);
            })
        };
        counter.add_to_fallback(0, 10);
        counter.add_to_fallback(0, 10);
        registered.join().expect("joined");
        assert_eq!(counter.read(), 22, "not exact");
    });
}

#[test]
fn plain_and_atomic_writers_have_words_of_their_own() {
    plans().iter().for_each(|&plan| plain_and_atomic(words::Variant::Correct, plan));
}

#[test]
#[should_panic(expected = "not exact")]
fn plain_and_atomic_writers_of_one_word_lose_counts() {
    plain_and_atomic(words::Variant::FallbackInTheCpusWord, CALM);
}

/// Checks a counter that is reset while one thread adds in sections and another reads.
fn set_and_read(variant: words::Variant, plan: Plan) {
    explore(2, 3, move || {
        let counter = Arc::new(words::Counter::new(
            variant,
            is_thorough() || variant == words::Variant::QuickBesideBaseline,
        ));
        counter.add(&mut Thread::on(1, CALM), 5);
        let writer = {
            let counter = Arc::clone(&counter);
            thread::spawn(move || counter.add(&mut Thread::on(1, plan), 1))
        };
        let setter = {
            let counter = Arc::clone(&counter);
            thread::spawn(move || counter.set(0))
        };
        let value = counter.read();
        assert!(value <= 6, "{}: less than the baseline", value as i64);
        writer.join().expect("joined");
        setter.join().expect("joined");
        let value = counter.read();
        assert!(value <= 1, "{}: the update is in once or not at all", value as i64);
        counter.set(70);
        assert_eq!(counter.read(), 70, "not exact");
    });
}

#[test]
fn no_reader_sees_less_than_the_baseline() {
    plans().iter().for_each(|&plan| set_and_read(words::Variant::Correct, plan));
}

#[test]
#[should_panic(expected = "less than the baseline")]
fn a_reader_that_adds_the_baseline_last_sees_less_than_it() {
    set_and_read(words::Variant::BaselineAfterWalk, CALM);
}

#[test]
#[should_panic(expected = "in once or not at all")]
fn zeroing_words_of_others_brings_old_counts_back() {
    set_and_read(words::Variant::RemoteZeroing, CALM);
}

/// Checks a counter that is reset right after the fallback cell was used for the first time.
fn set_after_fallback(variant: words::Variant) {
    explore(4, 5, move || {
        let counter = Arc::new(words::Counter::new(variant, true));
        counter.set(1);
        let other = {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                counter.add_to_fallback(0, 5);
                counter.set(0);
            })
        };
        let value = counter.read();
        assert!([0, 1, 6].contains(&value), "{}: less than the baseline", value as i64);
        other.join().expect("joined");
        assert_eq!(counter.read(), 0, "not exact");
    });
}

#[test]
fn no_reader_sees_less_than_a_baseline_made_from_the_first_fallback() {
    set_after_fallback(words::Variant::Correct);
}

#[test]
#[should_panic(expected = "less than the baseline")]
fn a_reader_that_asks_for_home_words_too_early_misses_a_baseline() {
    set_after_fallback(words::Variant::HomeAskedBeforeBaseline);
}

/// Checks a counter that one CPU counted in, and threads on another that end that there is one unit
/// to read.
fn two_cpus_and_quick_reads(variant: words::Variant, others: u64, fallback: bool) {
    explore(2, 3, move || {
        let counter = Arc::new(words::Counter::new(variant, true));
        let done = Arc::new(AtomicU64::new(1));
        counter.add(&mut Thread::on(0, CALM), 1);
        let others_there: Vec<_> = (0..others)
            .map(|_| {
                let (counter, done) = (Arc::clone(&counter), Arc::clone(&done));
                thread::spawn(move || {
                    if fallback {
                        counter.add_to_fallback(1, 1);
                    } else {
                        counter.add(&mut Thread::on(1, CALM), 1);
                    }
                    done.fetch_add(1, Ordering::Release);
                })
            })
            .collect();
        let mut last = 0;
        for _ in 0..2 {
            let handed_over = done.load(Ordering::Acquire);
            let value = counter.read();
            assert!(value >= handed_over, "{value} of {handed_over}: not visible");
            assert!(value >= last, "{value} after {last}: not monotone");
            last = value;
        }
        for other in others_there {
            other.join().expect("joined");
        }
        assert_eq!(counter.read(), 1 + others, "not exact");
    });
}

#[test]
fn a_quick_read_sees_the_second_cpu_and_the_fallback_cell() {
    two_cpus_and_quick_reads(words::Variant::Correct, if is_thorough() { 2 } else { 1 }, false);
    two_cpus_and_quick_reads(words::Variant::Correct, 1, true);
}

#[test]
#[should_panic(expected = "not visible")]
fn a_quick_reader_misses_a_second_cpu_that_is_let_in_before_it_is_told() {
    two_cpus_and_quick_reads(words::Variant::QuickAfterEntry, 2, false);
}

#[test]
#[should_panic(expected = "not exact")]
fn a_quick_reader_misses_a_fallback_cell_that_it_is_not_told_of() {
    two_cpus_and_quick_reads(words::Variant::QuickBesideFallback, 1, true);
}

/// Checks that where a thread uses the fallback cell for the first time, a second one finds its
/// flag set, by a load of this order, and hands over what it adds; a quick reader. The rest of the
/// protocol is left out, or there would be too many executions.
fn fallback_found_in_use(flag_load: Ordering) {
    const ONE_UNIT: u64 = 2;
    const SEVERAL: u64 = 1;
    loom::model(move || {
        let [quick, flag, done] = [ONE_UNIT, 0, 0].map(|value| Arc::new(AtomicU64::new(value)));
        let first = {
            let (quick, flag) = (Arc::clone(&quick), Arc::clone(&flag));
            thread::spawn(move || {
                quick.swap(SEVERAL, Ordering::SeqCst);
                flag.fetch_or(1, Ordering::SeqCst);
            })
        };
        let second = {
            let (flag, done) = (Arc::clone(&flag), Arc::clone(&done));
            thread::spawn(move || {
                if flag.load(flag_load) != 0 {
                    done.store(1, Ordering::Release);
                }
            })
        };
        if done.load(Ordering::Acquire) != 0 {
            let before = quick.load(Ordering::Acquire);
            // without the reader's fence: loom's acquires also for what the second thread loaded
            let after = quick.load(Ordering::Acquire);
            assert!(before != ONE_UNIT || after != ONE_UNIT, "not visible");
        }
        first.join().expect("joined");
        second.join().expect("joined");
    });
}

#[test]
fn whoever_finds_the_fallback_cell_in_use_knows_that_quick_readers_were_told() {
    fallback_found_in_use(Ordering::Acquire);
}

#[test]
#[should_panic(expected = "not visible")]
fn a_relaxed_load_of_the_fallback_flag_lets_a_count_be_missed() {
    fallback_found_in_use(Ordering::Relaxed);
}

#[test]
#[should_panic(expected = "in once or not at all")]
fn a_quick_reader_misses_a_baseline_that_it_is_not_told_of() {
    set_and_read(words::Variant::QuickBesideBaseline, CALM);
}

/// Checks a thread that adds on one CPU and takes away on the other, and a reader.
fn up_and_down(check: impl Fn(i64) + Sync + Send + 'static) {
    explore(2, 3, move || {
        let counter = Arc::new(words::Counter::new(words::Variant::Correct, true));
        counter.add(&mut Thread::on(0, CALM), 1);
        counter.add(&mut Thread::on(1, CALM), u64::MAX);
        let writer = {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                counter.add(&mut Thread::on(0, CALM), 1);
                counter.add(&mut Thread::on(1, CALM), u64::MAX);
            })
        };
        check(counter.read() as i64);
        writer.join().expect("joined");
        assert_eq!(counter.read(), 0, "not exact");
    });
}

#[test]
fn a_counter_that_goes_down_is_off_by_half_seen_pairs() {
    up_and_down(|value| assert!((-1..=1).contains(&value), "{value}"));
}

// as is documented on `Counter`
#[test]
#[should_panic(expected = "below zero")]
fn a_counter_that_goes_down_can_read_below_zero() {
    up_and_down(|value| assert!(value >= 0, "below zero"));
}

/// Checks commits to a latched line by threads of one CPU, one commit for each plan, and a reader that
/// may hold them off.
fn commits_and_reads(variant: latch::Variant, threads: &'static [&'static [Plan]]) {
    explore(1, 2, move || {
        let line = Arc::new(latch::Line::new(variant));
        let writers: Vec<_> = threads
            .iter()
            .map(|plans| {
                let line = Arc::clone(&line);
                thread::spawn(move || plans.iter().for_each(|plan| line.commit(&mut Thread::on(0, *plan), 1)))
            })
            .collect();
        let [first, second] = line.read_cpu();
        assert_eq!(first, second, "half an event");
        if is_thorough() {
            let values = line.read();
            assert!(values.iter().all(|value| *value >= first), "{values:?} after {first}: not monotone");
        }
        for writer in writers {
            writer.join().expect("joined");
        }
        let commits = threads.iter().map(|plans| plans.len() as u64).sum();
        assert_eq!(line.read(), [commits; 2], "not exact");
    });
}

#[test]
fn a_latched_event_is_whole_and_exact() {
    let few: [&'static [&'static [Plan]]; 3] =
        [&[&[CALM, CALM]], &[&[PLANS[3], CALM]], &[&[PLANS[3]], &[CALM]]];
    let more: [&'static [&'static [Plan]]; 6] = [
        &[&[CALM, CALM, CALM]],
        &[&[CALM, PLANS[3]]],
        &[&[PLANS[1], PLANS[2]]],
        &[&[PLANS[5], CALM]],
        &[&[PLANS[4], PLANS[3]]],
        &[&[PLANS[6]], &[PLANS[4]]],
    ];
    few.into_iter().for_each(|threads| commits_and_reads(latch::Variant::Correct, threads));
    if is_thorough() {
        more.into_iter().for_each(|threads| commits_and_reads(latch::Variant::Correct, threads));
    }
}

#[test]
#[should_panic(expected = "not exact")]
fn without_a_second_copy_an_aborted_half_stays() {
    commits_and_reads(latch::Variant::OneCopy, &[&[PLANS[3]]]);
}

#[test]
#[should_panic(expected = "half an event")]
fn without_a_second_copy_a_half_is_read() {
    commits_and_reads(latch::Variant::OneCopy, &[&[CALM, CALM]]);
}

#[test]
#[should_panic(expected = "half an event")]
fn a_copy_named_too_early_is_read_in_part() {
    commits_and_reads(latch::Variant::SequenceFirst, &[&[CALM, CALM]]);
}

#[test]
#[should_panic(expected = "half an event")]
fn without_a_barrier_an_unfinished_copy_passes_for_the_named_one() {
    commits_and_reads(latch::Variant::NoBarrier, &[&[CALM, CALM]]);
}

#[test]
#[should_panic(expected = "half an event")]
fn without_a_second_look_an_unfinished_copy_is_read() {
    commits_and_reads(latch::Variant::NoSecondLook, &[&[CALM, CALM]]);
}

// additions go to the copy that is named, between commits that copy it
#[test]
fn additions_between_commits_are_not_lost() {
    for &plan in plans() {
        explore(3, 4, move || {
            let line = Arc::new(latch::Line::new(latch::Variant::Correct));
            let adder = {
                let line = Arc::clone(&line);
                thread::spawn(move || {
                    let mut thread = Thread::on(0, plan);
                    line.add(&mut thread, 10);
                    line.add(&mut thread, 10);
                })
            };
            let mut thread = Thread::on(0, PLANS[3]);
            line.commit(&mut thread, 1);
            line.commit(&mut thread, 1);
            let [first, second] = line.read();
            assert!(first == 2 && [2, 12, 22].contains(&second), "{second}");
            adder.join().expect("joined");
            assert_eq!(line.read(), [2, 22], "not exact");
        });
    }
}

/// Checks a writer on one CPU, which is drained meanwhile and comes back, and a reader.
fn drained_and_read(variant: drain::Variant, plan: Plan, reads: usize) {
    explore(2, 3, move || {
        let counter = Arc::new(drain::Counter::new(variant));
        let done = Arc::new(AtomicU64::new(0));
        counter.add(&mut Thread::on(0, CALM), 1);
        let writer = {
            let (counter, done) = (Arc::clone(&counter), Arc::clone(&done));
            thread::spawn(move || {
                counter.add(&mut Thread::on(0, plan), 1);
                done.fetch_add(1, Ordering::Release);
            })
        };
        let drainer = {
            let counter = Arc::clone(&counter);
            thread::spawn(move || counter.drain())
        };
        let mut last = 0;
        for _ in 0..reads {
            let handed_over = 1 + done.load(Ordering::Acquire);
            let value = counter.read();
            assert!(value >= handed_over, "{value} of {handed_over}: not visible");
            assert!(value >= last, "{value} after {last}: not monotone");
            assert!(value <= 2, "{value}: doubled");
            last = value;
        }
        writer.join().expect("joined");
        drainer.join().expect("joined");
        assert_eq!(counter.read(), 2, "not exact");
        counter.drain();
        counter.add(&mut Thread::on(0, CALM), 1);
        assert_eq!(counter.read(), 3, "not exact");
    });
}

#[test]
fn a_drained_cpu_loses_and_doubles_nothing() {
    for &plan in [CALM].iter().chain(plans()).filter(|plan| !plan.moves) {
        drained_and_read(drain::Variant::Correct, plan, 1);
    }
    if is_thorough() {
        drained_and_read(drain::Variant::Correct, CALM, 2);
    }
}

#[test]
#[should_panic(expected = "not exact")]
fn without_a_membarrier_a_section_counts_in_a_folded_block() {
    drained_and_read(drain::Variant::NoBarrier, CALM, 0);
}

#[test]
#[should_panic(expected = "not exact")]
fn a_cpu_announced_during_a_drain_loses_counts() {
    drained_and_read(drain::Variant::AnnouncedMeanwhile, PLANS[1], 0);
}

#[test]
#[should_panic(expected = "not visible")]
fn a_reader_must_look_whether_its_view_is_still_there() {
    drained_and_read(drain::Variant::NoSecondLook, CALM, 1);
}

#[test]
#[should_panic(expected = "not visible")]
fn a_quick_reader_must_look_whether_there_is_still_one_unit() {
    drained_and_read(drain::Variant::NoSecondQuickLook, CALM, 1);
}

#[test]
#[should_panic(expected = "not exact")]
fn a_quick_reader_must_be_told_of_the_residue() {
    drained_and_read(drain::Variant::QuickBesideDrain, CALM, 1);
}

#[test]
#[should_panic(expected = "not visible")]
fn a_block_freed_before_publication_is_missed() {
    drained_and_read(drain::Variant::FreedBeforePublished, CALM, 1);
}

#[test]
#[should_panic(expected = "not visible")]
fn with_one_view_a_block_is_missed_or_read_twice() {
    drained_and_read(drain::Variant::OneView, CALM, 1);
}

/// Checks a sum that one thread adds 1 to, twice, while another sets it and this one reads. What was
/// added before the model begins is `before`.
fn added_and_set(variant: epoch::Variant, plan: Plan, before: u64) {
    explore(2, 3, move || {
        let sum = Arc::new(epoch::Sum::new(variant));
        let [added, set] = [0, 0].map(|value| Arc::new(AtomicU64::new(value)));
        (0..before).for_each(|_| sum.add(&mut Thread::on(0, CALM), 1));
        let writer = {
            let (sum, added) = (Arc::clone(&sum), Arc::clone(&added));
            thread::spawn(move || {
                let mut thread = Thread::on(0, plan);
                for _ in 0..2 {
                    sum.add(&mut thread, 1);
                    added.fetch_add(1, Ordering::Release);
                }
            })
        };
        let setter = {
            let (sum, set) = (Arc::clone(&sum), Arc::clone(&set));
            thread::spawn(move || {
                sum.set(100);
                set.store(1, Ordering::Release);
            })
        };
        let least = match set.load(Ordering::Acquire) {
            0 => before + added.load(Ordering::Acquire),
            _ => 100,
        };
        let value = sum.read();
        assert!(value >= least, "{value} after {least}: not visible");
        let whole = [before..=before + 2, 100..=102].iter().any(|range| range.contains(&value));
        assert!(whole, "{value}: partly set");
        writer.join().expect("joined");
        setter.join().expect("joined");
        let value = sum.read();
        assert!((100..=102).contains(&value), "{value} after a set to 100 and two additions");
        sum.add(&mut Thread::on(0, CALM), 1);
        assert_eq!(sum.read(), value + 1, "not exact");
        sum.add(&mut Thread::on(1, CALM), 1);
        sum.set(200);
        assert_eq!(sum.read(), 200, "not exact");
        sum.set(300);
        assert_eq!(sum.read(), 300, "not exact");
        sum.add(&mut Thread::on(0, CALM), 1);
        assert_eq!(sum.read(), 301, "not exact");
    });
}

#[test]
fn an_addition_is_wholly_before_or_after_a_set() {
    for &plan in plans() {
        added_and_set(epoch::Variant::Correct, plan, 1);
    }
    added_and_set(epoch::Variant::Correct, PLANS[3], 0);
    added_and_set(epoch::Variant::Correct, PLANS[2], 0);
}

#[test]
#[should_panic(expected = "partly set")]
fn a_stale_sum_that_counts_before_it_is_replaced_is_read() {
    added_and_set(epoch::Variant::EpochFirst, CALM, 5);
}

#[test]
#[should_panic(expected = "not visible")]
fn without_a_second_look_a_sum_after_a_set_is_added_to_the_value_before() {
    added_and_set(epoch::Variant::NoSecondLook, CALM, 5);
}

#[test]
#[should_panic(expected = "partly set")]
fn with_one_value_a_set_shows_before_it_is_done() {
    added_and_set(epoch::Variant::OneValue, CALM, 5);
}

#[test]
#[should_panic(expected = "not exact")]
fn a_sum_zeroed_by_others_comes_back() {
    added_and_set(epoch::Variant::ZeroesTheSum, CALM, 5);
}

#[test]
#[should_panic(expected = "not exact")]
fn a_fallback_cell_that_is_kept_counts_again_after_two_sets() {
    added_and_set(epoch::Variant::KeepsTheFallback, CALM, 0);
}

/// Checks a maximum that a thread on `cpu` observes 9 for, while this one takes it twice, and then observes 7
/// and reads. `before` was observed before.
fn observed_and_taken(variant: maximum::Variant, plan: Plan, cpu: usize, before: u64) {
    explore(2, 3, move || {
        let maximum = Arc::new(maximum::Maximum::new(variant));
        if before > 0 {
            maximum.observe(&mut Thread::on(0, CALM), before);
        }
        let writer = {
            let maximum = Arc::clone(&maximum);
            thread::spawn(move || maximum.observe(&mut Thread::on(cpu, plan), 9))
        };
        let first = maximum.take();
        assert!(first == before || first == 9, "{first}: {before} is lost");
        let second = maximum.take();
        assert!(second == 0 || second == 9, "{second}: {before} is taken twice");
        maximum.observe(&mut Thread::on(0, CALM), 7);
        let value = maximum.read();
        assert!(value == 7 || value == 9, "{value} after 7: not visible");
        writer.join().expect("joined");
        let third = maximum.take();
        assert!(third == 7 || third == 9, "{third} after 7: not exact");
        assert!([first, second, third].contains(&9), "{first}, {second}, {third}: 9 is lost");
        assert_eq!(maximum.take(), 0, "not exact");
        assert_eq!(maximum.take(), 0, "not exact");
    });
}

#[test]
fn every_observation_is_taken() {
    for &plan in plans() {
        observed_and_taken(maximum::Variant::Correct, plan, 0, 3);
    }
    observed_and_taken(maximum::Variant::Correct, CALM, 0, 0);
    observed_and_taken(maximum::Variant::Correct, CALM, 1, 3);
}

#[test]
#[should_panic(expected = "after 7")]
fn a_section_of_an_epoch_that_is_over_replaces_a_later_maximum() {
    observed_and_taken(maximum::Variant::EpochOutside, CALM, 0, 3);
}

#[test]
#[should_panic(expected = "9 is lost")]
fn a_section_that_goes_on_is_missed_by_a_take() {
    observed_and_taken(maximum::Variant::SectionsGoOn, CALM, 0, 3);
}

#[test]
#[should_panic(expected = "9 is lost")]
fn an_update_of_the_fallback_cell_of_an_epoch_that_is_over_is_lost() {
    observed_and_taken(maximum::Variant::NoSecondLook, CALM, 1, 3);
}

#[test]
#[should_panic(expected = "is lost")]
fn with_the_same_words_for_all_epochs_a_new_one_replaces_what_is_to_be_taken() {
    observed_and_taken(maximum::Variant::OneSlot, CALM, 0, 3);
}

/// Checks a counter that three threads of one CPU count with, of which this one also reads it; the others
/// count so many times.
fn approximately_read(variant: bounded::Variant, plan: Plan, increments: [u64; 2]) {
    // in the models a thread that moves makes it two CPUs
    let bound = bounded::Counter::bound(if plan.moves { 2 } else { 1 });
    explore(2, 3, move || {
        let counter = Arc::new(bounded::Counter::new(variant));
        counter.inc(&mut Thread::on(0, CALM));
        let writers = [(plan, increments[0]), (CALM, increments[1])].map(|(plan, increments)| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                let mut thread = Thread::on(0, plan);
                (0..increments).for_each(|_| counter.inc(&mut thread));
            })
        });
        // the others first: their being stopped in the middle are the two preemptions
        thread::yield_now();
        counter.inc(&mut Thread::on(0, CALM));
        let least = counter.read();
        assert!(least >= 2, "{least} of 2: not visible");
        let value = counter.approximate();
        let most = counter.read();
        assert!(value + bound >= least && value <= most + bound, "{value} of {least} to {most}: off");
        for writer in writers {
            writer.join().expect("joined");
        }
        let exact = counter.read();
        assert_eq!(exact, 2 + increments.iter().sum::<u64>(), "not exact");
        let value = counter.approximate();
        assert!(value + bound >= exact && value <= exact + bound, "{value} of {exact}: off");
    });
}

#[test]
fn an_approximate_value_is_within_its_bound() {
    for &plan in plans() {
        approximately_read(bounded::Variant::Correct, plan, [1, 1]);
    }
    if is_thorough() {
        approximately_read(bounded::Variant::Correct, CALM, [1, 2]);
    }
}

#[test]
#[should_panic(expected = "off")]
fn with_several_flushes_under_way_a_value_is_off_by_more_than_the_bound() {
    approximately_read(bounded::Variant::NoLock, CALM, [1, 2]);
}

#[test]
#[should_panic(expected = "off")]
fn with_flushes_after_the_update_a_value_is_off_by_more_than_the_bound() {
    approximately_read(bounded::Variant::FlushAfterwards, CALM, [1, 2]);
}

#[test]
#[should_panic(expected = "not visible")]
fn counts_that_are_moved_are_missed_meanwhile() {
    approximately_read(bounded::Variant::TakenOut, CALM, [1, 1]);
}
