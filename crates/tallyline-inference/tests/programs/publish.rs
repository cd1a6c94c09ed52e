// Part of Rust programs that publish what they have, by `include!`.

static PUBLICATIONS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// Says where objects are, as `published.h` does.
fn publish<T>(name: &str, first: *const T, count: usize) {
    use std::io::Write;
    use std::sync::atomic::Ordering::Relaxed;
    let Ok(path) = std::env::var("TALLYLINE_TRUTH") else { return };
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    let before = PUBLICATIONS.load(Relaxed);
    if before == 0 {
        writeln!(file, "(publications)\t{:#x}\t8\t1", PUBLICATIONS.as_ptr() as usize).unwrap();
    }
    // there is one thread
    PUBLICATIONS.store(before + 1, Relaxed);
    writeln!(file, "{name}\t{:#x}\t{}\t{count}", first as usize, size_of::<T>()).unwrap();
}
