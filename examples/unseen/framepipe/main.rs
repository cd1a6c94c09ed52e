//! Audio and video of a recorder: each has an encoder of its own, and both report to one status object.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;

/// Read by the window, twice a second.
#[repr(C, align(64))]
struct Status {
    audio_packets: AtomicU64,
    audio_bytes: AtomicU64,
    video_blocks: AtomicU64,
    video_bits: AtomicU64,
}

impl Status {
    fn new() -> Status {
        Status {
            audio_packets: AtomicU64::new(0),
            audio_bytes: AtomicU64::new(0),
            video_blocks: AtomicU64::new(0),
            video_bits: AtomicU64::new(0),
        }
    }

    fn show(&self) -> String {
        format!(
            "audio {} packets {} bytes, video {} blocks {} bits",
            self.audio_packets.load(Relaxed),
            self.audio_bytes.load(Relaxed),
            self.video_blocks.load(Relaxed),
            self.video_bits.load(Relaxed)
        )
    }
}

/// Adds to a count that only one thread writes.
fn bump(count: &AtomicU64, by: u64) {
    count.store(count.load(Relaxed).wrapping_add(by), Relaxed);
}

const STEPS: [i32; 16] = [7, 8, 9, 11, 13, 16, 19, 23, 28, 34, 41, 50, 60, 73, 88, 107];

/// Differential coder of a mono signal, four bits a sample.
struct AudioEncoder {
    predicted: i32,
    index: usize,
}

impl AudioEncoder {
    fn new() -> AudioEncoder {
        AudioEncoder { predicted: 0, index: 4 }
    }

    fn sample(&mut self, value: i32) -> u8 {
        let step = STEPS[self.index];
        let difference = value - self.predicted;
        let sign = if difference < 0 { 8 } else { 0 };
        let magnitude = (difference.abs() / step.max(1)).min(7);
        let change = magnitude * step + step / 2;
        self.predicted += if sign != 0 { -change } else { change };
        self.index = if magnitude >= 4 { (self.index + 2).min(15) } else { self.index.saturating_sub(1) };
        (sign | magnitude) as u8
    }

    #[inline(never)]
    fn packet(&mut self, samples: &[i16; 4], status: &Status) -> u32 {
        let mut out = 0u32;
        let mut bytes = 0;
        for s in samples {
            let code = self.sample(i32::from(*s));
            out = out << 4 | u32::from(code);
            bytes += u64::from(code != 0);
        }
        bump(&status.audio_packets, 1);
        bump(&status.audio_bytes, bytes);
        out
    }
}

/// Quantises blocks of eight differences; only what is not zero costs bits.
struct VideoEncoder {
    quantiser: i16,
    last: [i16; 8],
}

impl VideoEncoder {
    fn new(quantiser: i16) -> VideoEncoder {
        VideoEncoder { quantiser, last: [0; 8] }
    }

    #[inline(never)]
    fn block(&mut self, pixels: &[i16; 8], status: &Status) -> u32 {
        let mut mask = 0u32;
        let mut bits = 8u64;
        for i in 0..8 {
            let d = (pixels[i] - self.last[i]) >> self.quantiser;
            if d != 0 {
                mask |= 1 << i;
                bits += u64::from(16 - (d.unsigned_abs()).leading_zeros());
            }
            self.last[i] = pixels[i];
        }
        bump(&status.video_blocks, 1);
        bump(&status.video_bits, bits);
        mask
    }
}

struct Source {
    state: u64,
}

impl Source {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.state >> 33
    }
}

fn record_audio() -> Vec<[i16; 4]> {
    let mut noise = Source { state: 17 };
    let mut level = 0i16;
    (0..1024)
        .map(|_| {
            let mut packet = [0i16; 4];
            for s in &mut packet {
                level = (level + (noise.next() % 41) as i16 - 20).clamp(-3000, 3000);
                *s = level;
            }
            packet
        })
        .collect()
}

fn record_video() -> Vec<[i16; 8]> {
    let mut noise = Source { state: 91 };
    (0..1024)
        .map(|n| {
            let mut block = [0i16; 8];
            for (i, p) in block.iter_mut().enumerate() {
                *p = ((n * 3 + i) % 256) as i16 + (noise.next() % 9) as i16;
            }
            block
        })
        .collect()
}

fn main() {
    let rounds: u32 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(1500);
    let status = Arc::new(Status::new());

    let audio = {
        let status = Arc::clone(&status);
        let packets = record_audio();
        thread::spawn(move || {
            let mut encoder = AudioEncoder::new();
            let mut digest = 0u64;
            for _ in 0..rounds {
                for p in &packets {
                    digest = digest.rotate_left(5) ^ u64::from(encoder.packet(p, &status));
                }
            }
            digest
        })
    };
    let video = {
        let status = Arc::clone(&status);
        let blocks = record_video();
        thread::spawn(move || {
            let mut encoder = VideoEncoder::new(2);
            let mut digest = 0u64;
            for _ in 0..rounds {
                for b in &blocks {
                    digest = digest.wrapping_mul(33).wrapping_add(u64::from(encoder.block(b, &status)));
                }
            }
            digest
        })
    };

    let a = audio.join().expect("audio");
    let v = video.join().expect("video");
    println!("{}; digests {a:016x} {v:016x}", status.show());
}
