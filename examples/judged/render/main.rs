//! A picture of a fractal: threads draw the number of the next row and compute it.
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

const WIDTH: usize = 64;

#[repr(align(128))]
struct Tickets(AtomicUsize);

struct Picture {
    tickets: Tickets,
    rows: Vec<Mutex<Row>>,
    height: usize,
    limit: u32,
}

#[repr(align(64))]
struct Row {
    counts: [u16; WIDTH],
}

impl Picture {
    fn new(height: usize, limit: u32) -> Self {
        Picture {
            tickets: Tickets(AtomicUsize::new(0)),
            rows: (0..height).map(|_| Mutex::new(Row { counts: [0; WIDTH] })).collect(),
            height,
            limit,
        }
    }

    fn point(&self, x: usize, y: usize) -> u16 {
        let cr = x as f64 / WIDTH as f64 * 3.0 - 2.0;
        let ci = y as f64 / self.height as f64 * 2.0 - 1.0;
        let (mut zr, mut zi) = (0.0f64, 0.0f64);
        let mut n = 0;
        while n < self.limit && zr * zr + zi * zi < 4.0 {
            let t = zr * zr - zi * zi + cr;
            zi = 2.0 * zr * zi + ci;
            zr = t;
            n += 1;
        }
        n as u16
    }

    /// Computes rows until none is left, and returns how many.
    fn draw(&self) -> usize {
        let mut drawn = 0;
        loop {
            let y = self.tickets.0.fetch_add(1, Relaxed);
            if y >= self.height {
                return drawn;
            }
            let mut row = self.rows[y].lock().unwrap();
            for x in 0..WIDTH {
                row.counts[x] = self.point(x, y);
            }
            drawn += 1;
        }
    }
}

fn main() {
    let height: usize = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(1500);
    let picture = Arc::new(Picture::new(height, 40));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let picture = Arc::clone(&picture);
            thread::spawn(move || picture.draw())
        })
        .collect();
    let drawn: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
    let sum: u64 = picture
        .rows
        .iter()
        .map(|r| r.lock().unwrap().counts.iter().map(|&c| u64::from(c)).sum::<u64>())
        .sum();
    println!("{drawn} rows, {sum} iterations");
}
