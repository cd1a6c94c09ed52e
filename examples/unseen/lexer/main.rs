//! Lexes the modules of a made-up language on several threads and counts what it has seen.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;

/// The state of the progress bar, on a line of its own.
#[repr(align(128))]
struct Progress {
    tokens: AtomicU64,
}

impl Progress {
    fn new() -> Self {
        Progress { tokens: AtomicU64::new(0) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token {
    Word { hash: u32 },
    Number { value: u64 },
    Text { length: u32 },
    Punctuation(u8),
    End,
}

struct Lexer<'a> {
    source: &'a [u8],
    at: usize,
    line: u32,
    progress: &'a Progress,
}

impl<'a> Lexer<'a> {
    fn new(source: &'a [u8], progress: &'a Progress) -> Self {
        Lexer { source, at: 0, line: 1, progress }
    }

    fn peek(&self) -> u8 {
        self.source.get(self.at).copied().unwrap_or(0)
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                b' ' | b'\t' => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    self.line += 1;
                }
                b'#' => {
                    while self.peek() != b'\n' && self.peek() != 0 {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    fn word(&mut self) -> Token {
        let mut hash = 2166136261u32;
        while self.peek().is_ascii_alphanumeric() || self.peek() == b'_' {
            hash = (hash ^ u32::from(self.peek())).wrapping_mul(16777619);
            self.at += 1;
        }
        Token::Word { hash }
    }

    fn number(&mut self) -> Token {
        let mut value = 0u64;
        while self.peek().is_ascii_digit() {
            value = value.wrapping_mul(10) + u64::from(self.peek() - b'0');
            self.at += 1;
        }
        Token::Number { value }
    }

    fn text(&mut self) -> Token {
        self.at += 1;
        let start = self.at;
        while self.peek() != b'"' && self.peek() != 0 {
            self.at += 1;
        }
        let length = (self.at - start) as u32;
        self.at += 1;
        Token::Text { length }
    }

    #[inline(never)]
    fn next(&mut self) -> Token {
        self.skip_blanks();
        let token = match self.peek() {
            0 => return Token::End,
            b'"' => self.text(),
            c if c.is_ascii_digit() => self.number(),
            c if c.is_ascii_alphabetic() || c == b'_' => self.word(),
            c => {
                self.at += 1;
                Token::Punctuation(c)
            }
        };
        self.progress.tokens.fetch_add(1, Ordering::Relaxed);
        token
    }
}

#[derive(Default, Clone, Copy)]
struct Summary {
    words: u64,
    numbers: u64,
    text_bytes: u64,
    depth: i64,
    lines: u64,
    digest: u64,
}

impl Summary {
    fn add(&mut self, other: &Summary) {
        self.words += other.words;
        self.numbers = self.numbers.wrapping_add(other.numbers);
        self.text_bytes += other.text_bytes;
        self.depth += other.depth;
        self.lines += other.lines;
        self.digest = self.digest.wrapping_add(other.digest);
    }
}

fn lex(source: &[u8], progress: &Progress) -> Summary {
    let mut lexer = Lexer::new(source, progress);
    let mut summary = Summary::default();
    loop {
        match lexer.next() {
            Token::End => break,
            Token::Word { hash } => {
                summary.words += 1;
                summary.digest = summary.digest.wrapping_mul(31).wrapping_add(u64::from(hash));
            }
            Token::Number { value } => summary.numbers = summary.numbers.wrapping_add(value),
            Token::Text { length } => summary.text_bytes += u64::from(length),
            Token::Punctuation(b'(' | b'{') => summary.depth += 1,
            Token::Punctuation(b')' | b'}') => summary.depth -= 1,
            Token::Punctuation(_) => {}
        }
    }
    summary.lines = u64::from(lexer.line);
    summary
}

/// A module of `functions` functions.
fn write_module(seed: u32, functions: u32) -> String {
    let mut state = seed.wrapping_mul(2654435761) | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    let names = ["x", "n", "sum", "key", "row", "at", "buf", "len"];
    let mut out = String::new();
    for f in 0..functions {
        out.push_str(&format!("fn f{f}(a, b) {{\n"));
        for _ in 0..6 {
            let name = names[(random() % 8) as usize];
            match random() % 4 {
                0 => out.push_str(&format!("  {name} = a + {};\n", random() % 90)),
                1 => out.push_str(&format!("  if ({name} < {}) {{ b = -b; }}\n", random() % 10)),
                2 => out.push_str(&format!("  {name}(\"s{}\", a * b);\n", random() % 7)),
                _ => out.push_str(&format!("  {name}[{}] = (a); # set\n", random() % 16)),
            }
        }
        out.push_str("}\n");
    }
    out
}

fn main() {
    let mut args = std::env::args().skip(1);
    let rounds: u32 = args.next().and_then(|a| a.parse().ok()).unwrap_or(20);
    let threads: u32 = args.next().and_then(|a| a.parse().ok()).unwrap_or(2);
    let progress = Arc::new(Progress::new());
    let handles: Vec<_> = (0..threads)
        .map(|t| {
            let module = write_module(t + 1, 200);
            let progress = Arc::clone(&progress);
            thread::spawn(move || {
                let mut total = Summary::default();
                for _ in 0..rounds {
                    total.add(&lex(module.as_bytes(), &progress));
                }
                total
            })
        })
        .collect();
    let mut total = Summary::default();
    for handle in handles {
        total.add(&handle.join().expect("a lexer panicked"));
    }
    println!(
        "{} tokens on {} lines: {} words, numbers {}, {} bytes of text, depth {}, digest {:x}",
        progress.tokens.load(Ordering::Relaxed),
        total.lines,
        total.words,
        total.numbers,
        total.text_bytes,
        total.depth,
        total.digest
    );
}
