//! Ours in processes of their own, in which libc or the library registers threads for rseq.
//!
//! A process has one registration for good, so each way is a child that counts when it is told to, one for
//! each thread of the crew, on that thread's CPU. What both ways have more than other sides is a round trip
//! through two pipes for each run, some microseconds.

use super::{Available, Side, fixed, os};
use anyhow::{Context, Result, bail};
use statctr::{Placement, Pool, Registration, registration};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Returns a side (one of the implementations compared) that increments a counter in one child process for each of
/// `cpus`, whose threads libc or the library (`wanted`) registers for restartable sequences.
pub(crate) fn inc(wanted: Registration, cpus: &[usize]) -> Available {
    let counters: Result<Vec<_>> =
        cpus.iter().map(|&cpu| Counting::start(wanted, cpu).map(Mutex::new)).collect();
    match counters {
        Ok(counters) => Ok(Box::new(Registered(counters))),
        Err(error) => Err(format!("{error:#}")),
    }
}

struct Registered(Vec<Mutex<Counting>>);

impl Side for Registered {
    fn placements(&self) -> usize {
        super::looped::PLACEMENTS
    }

    fn run(&self, thread: usize, placement: usize, n: u64) {
        let mut child = self.0[thread % self.0.len()].lock().unwrap_or_else(PoisonError::into_inner);
        // a child that is gone counts nothing, which the total shows
        if let Ok(total) = child.ask(placement, n) {
            child.total = total;
        }
    }

    fn total(&self) -> Option<u64> {
        let totals = self.0.iter().map(|child| child.lock().unwrap_or_else(PoisonError::into_inner).total);
        Some(totals.sum())
    }
}

/// A child that counts. It ends when its standard input does.
struct Counting {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    total: u64,
}

impl Counting {
    fn start(wanted: Registration, cpu: usize) -> Result<Counting> {
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.args(["count-for-update", &cpu.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.env_remove("STATCTR_REGISTER").env_remove("GLIBC_TUNABLES");
        if wanted == Registration::Own {
            command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
        }
        let mut child = command.spawn().context("cannot start a process that counts")?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take().context("no pipe")?);
        let mut counting = Counting { child, orders, answers: BufReader::new(answers), total: 0 };
        let found = counting.line()?;
        if found != wanted.to_string() {
            bail!("threads are registered {found} there, not {wanted}");
        }
        Ok(counting)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).context("a process that counts is gone")?;
        Ok(line.trim_end().to_owned())
    }

    fn ask(&mut self, placement: usize, n: u64) -> Result<u64> {
        let orders = self.orders.as_mut().context("no pipe")?;
        writeln!(orders, "{placement} {n}").context("a process that counts is gone")?;
        self.line()?.parse().context("no number")
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.child.wait();
    }
}

/// Runs the child process of a benchmark on one CPU: prints who registers its threads for restartable sequences,
/// then, for each line of standard input (copy of the loop, number of increments), increments a counter and prints
/// its value.
pub(crate) fn count(cpu: usize) -> Result<()> {
    os::pin(cpu).with_context(|| format!("cannot run on CPU {cpu}"))?;
    let side = fixed::inc(&Pool::builder().placement(Placement::Fixed).build()?, false)?;
    println!(
        "{}",
        registration().map_or_else(|| "by nobody".to_owned(), |registration| registration.to_string())
    );
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (placement, n) = line.split_once(' ').context("not an order")?;
        side.run(0, placement.parse()?, n.parse()?);
        println!("{}", side.total().unwrap_or(0));
    }
    Ok(())
}
