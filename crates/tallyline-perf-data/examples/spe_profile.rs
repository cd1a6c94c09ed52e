//! Writes a recording with traces of Arm's SPE, for machines without: `cargo run --example spe_profile FILE [SEED]
//! [RECORDS [old]]`. Operations of each kind on CPUs of different designs, so many on each; parts of traces end between
//! records, as perf wants them. An old one is as perf wrote it before Linux 6.14, on a machine whose packets do not say
//! which thread it was.

#[path = "../tests/spe/stream.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod stream;

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: spe_profile FILE [SEED] [RECORDS]")?;
    let number =
        |index: usize, default: u64| std::env::args().nth(index).map_or(Ok(default), |word| word.parse());
    let (seed, records) = (number(2, 1)?, number(3, 1000)?);
    let file = BufWriter::new(File::create(path)?);
    let mut operations = stream::operations(seed, records);
    let mut writer = if std::env::args().nth(4).is_some_and(|word| word == "old") {
        let mut writer = stream::begin_old(file)?;
        stream::without_threads(&mut writer, &mut operations)?;
        writer
    } else {
        stream::begin(file, Some(&stream::CLOCK))?
    };
    let mut random = stream::Random(seed | 1);
    let mut size = || 128 * (1 + random.below(64) as usize);
    stream::traces(&mut writer, &operations, &mut size)?;
    stream::end(writer)?;
    Ok(())
}
