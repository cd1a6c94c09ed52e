//! Writes a recording with traces of Arm's SPE, for machines without: `cargo run --example spe_profile FILE [SEED]
//! [RECORDS]`. Operations of each kind on CPUs of different designs, so many on each; parts of traces end between
//! records, as perf wants them.

#[path = "../tests/spe/stream.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod stream;

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: spe_profile FILE [SEED] [RECORDS]")?;
    let number =
        |index: usize, default: u64| std::env::args().nth(index).map_or(Ok(default), |word| word.parse());
    let (seed, records) = (number(2, 1)?, number(3, 1000)?);
    let mut writer = stream::begin(BufWriter::new(File::create(path)?), Some(&stream::CLOCK))?;
    let mut random = stream::Random(seed | 1);
    let mut size = || 128 * (1 + random.below(64) as usize);
    stream::traces(&mut writer, &stream::operations(seed, records), &mut size)?;
    stream::end(writer)?;
    Ok(())
}
