//! Two stages over one film, a decoder and a scaler, with the progress that a display may show.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;

#[derive(Default)]
#[repr(align(64))]
struct Progress {
    decoded_frames: AtomicU64,
    decoded_bits: AtomicU64,
    scaled_frames: AtomicU64,
    scaled_rows: AtomicU64,
}

struct Film {
    packets: Vec<u32>,
    frames: u64,
}

impl Film {
    fn new(frames: u64) -> Self {
        let mut x = 12345u32;
        let packets = (0..2048)
            .map(|_| {
                x = x.wrapping_mul(1664525).wrapping_add(1013904223);
                x
            })
            .collect();
        Film { packets, frames }
    }
}

fn decode_packet(word: u32) -> (u32, u32) {
    let mut value = word;
    let mut bits = 0;
    while value > 1 << 26 {
        let length = value.leading_zeros() + 3;
        bits += length;
        value = value.wrapping_shl(length) >> 1;
    }
    (value, bits)
}

fn decode(film: &Film, progress: &Progress) -> u64 {
    let mut picture = 0u64;
    for frame in 0..film.frames {
        let (value, bits) = decode_packet(film.packets[(frame % 2048) as usize]);
        picture = picture.rotate_left(5) ^ u64::from(value);
        progress.decoded_frames.fetch_add(1, Relaxed);
        progress.decoded_bits.fetch_add(u64::from(bits), Relaxed);
    }
    picture
}

fn scale(film: &Film, progress: &Progress) -> u64 {
    let mut level = 1u64 << 32;
    for frame in 0..film.frames {
        let rows = 4 + frame % 4;
        for row in 0..rows {
            level = (level * 31 + u64::from(film.packets[((frame + row) % 2048) as usize])) >> 1;
        }
        progress.scaled_frames.fetch_add(1, Relaxed);
        progress.scaled_rows.fetch_add(rows, Relaxed);
    }
    level
}

fn main() {
    let frames: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(20_000);
    let film = Arc::new(Film::new(frames));
    let progress = Arc::new(Progress::default());
    let decoder = {
        let (film, progress) = (Arc::clone(&film), Arc::clone(&progress));
        thread::spawn(move || decode(&film, &progress))
    };
    let scaler = {
        let (film, progress) = (Arc::clone(&film), Arc::clone(&progress));
        thread::spawn(move || scale(&film, &progress))
    };
    let picture = decoder.join().unwrap();
    let level = scaler.join().unwrap();
    println!(
        "decoded {} frames ({} bits), scaled {} frames ({} rows), {picture:x} {level:x}",
        progress.decoded_frames.load(Relaxed),
        progress.decoded_bits.load(Relaxed),
        progress.scaled_frames.load(Relaxed),
        progress.scaled_rows.load(Relaxed)
    );
}
