//! A small program, compiled and recorded here.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs until somebody ends it, in a few functions that each have fields of their own.
const SOURCE: &str = "\
#include <stdlib.h>
#include <time.h>
struct rate { long price; int discount; int uses; };
struct order { struct order *next; char name[40]; struct rate *rate; int flags; int count; long total; };
static struct rate rates[64];
__attribute__((noinline)) static long walk(struct order *order, long steps) {
  long sum = 0;
  for (; steps > 0; steps--) { sum += order->flags; order = order->next; }
  return sum;
}
__attribute__((noinline)) static void mark(struct order *orders, int count) {
  for (int i = 0; i < count; i++) orders[i].flags += i;
}
__attribute__((noinline)) static void charge(struct order *orders, int count) {
  for (int i = 0; i < count; i++) {
    struct order *order = &orders[i];
    order->total += order->rate->price * order->count - order->rate->discount;
    order->rate->uses++;
  }
}
int main(int argc, char **argv) {
  int count = 20000;
  double seconds = argc > 1 ? atof(argv[1]) : 1;
  struct order *orders = calloc(count, sizeof *orders);
  for (int i = 0; i < count; i++) {
    orders[i].next = &orders[(i * 7919L + 1) % count];
    orders[i].rate = &rates[i % 64];
  }
  struct timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  long sum = 0;
  do {
    mark(orders, count);
    charge(orders, count);
    sum += walk(orders, count);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec - start.tv_sec + (now.tv_nsec - start.tv_nsec) / 1e9 < seconds);
  return sum == 1; /* it is not */
}
";

/// Samples a second: as many as kernels let through.
const FREQUENCY: u64 = 20_000;

/// Compiles the program and records at least so many samples of it: the program, and the recording.
pub(super) fn record(ours: &Path, folder: &Path, samples: u64) -> Result<(PathBuf, PathBuf)> {
    let (source, program) = (folder.join("orders.c"), folder.join("orders"));
    fs::write(&source, SOURCE).with_context(|| format!("cannot write {}", source.display()))?;
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(["-O2", "-g", "-o"]).arg(&program).arg(&source);
    super::output(&mut command).context("cannot compile a program")?;
    let recording = folder.join("orders.data");
    // a busy machine lets through fewer
    let mut seconds = samples as f64 / FREQUENCY as f64 * 1.2;
    for _ in 0..3 {
        let mut command = Command::new(ours);
        command.args(["record", "-q", "--all-user", "-e", "cpu-clock", "-F", &FREQUENCY.to_string(), "-o"]);
        command.arg(&recording).arg("--").arg(&program).arg(seconds.to_string());
        super::output(&mut command)?;
        let there = count(ours, &recording)?;
        if there >= samples {
            return Ok((program, recording));
        }
        seconds *= samples as f64 / there.max(1) as f64 * 1.2;
        if seconds > 600.0 {
            break;
        }
    }
    bail!("this machine does not take {samples} samples")
}

/// Returns the number of samples. The recording is not read in this process: its peak memory would be counted as
/// that of each process that it starts.
fn count(ours: &Path, recording: &Path) -> Result<u64> {
    let mut command = Command::new(ours);
    command.args(["report", "-s", "comm", "--json", "-i"]).arg(recording);
    let document: Value =
        serde_json::from_str(&super::output(&mut command)?).context("cannot understand tallyline report")?;
    Ok(document["samples"].as_u64().unwrap_or(0))
}
