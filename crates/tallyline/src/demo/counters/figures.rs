//! Numbers as people read them.

/// Formats a number with three significant digits: `0.14`, `3.21`, `66.3`, `248`, `1,234`.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        magnitude if magnitude < 9.995 => format!("{value:.2}"),
        magnitude if magnitude < 99.95 => format!("{value:.1}"),
        _ => count(value.round().max(0.0) as u64),
    }
}

/// Formats a duration, given in nanoseconds, in a suitable unit.
pub(crate) fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 9_999.5 => format!("{} ns", short(ns)),
        ns if ns < 9_999_500.0 => format!("{} µs", short(ns / 1e3)),
        ns => format!("{} ms", short(ns / 1e6)),
    }
}

/// Formats a ratio: `4.2`, `29`, `1,024`.
pub(crate) fn ratio(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { count(value.round() as u64) }
}

/// Formats an integer with thousands separators: `1,234,567`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a large number as words: `12.3 thousand`, `4.56 million`, `7.89 billion`.
pub(crate) fn about(value: u64) -> String {
    match value as f64 {
        v if v < 99_999.5 => count(value),
        v if v < 999_500.0 => format!("{} thousand", short(v / 1e3)),
        v if v < 999_500_000.0 => format!("{} million", short(v / 1e6)),
        v => format!("{} billion", short(v / 1e9)),
    }
}

/// Formats a number of bytes in a suitable unit.
pub(crate) fn bytes(value: usize) -> String {
    match value as f64 {
        v if v < 1024.0 => format!("{value} bytes"),
        v if v < 1024.0 * 1024.0 => format!("{} KiB", three(v / 1024.0)),
        v if v < 1024.0 * 1024.0 * 1024.0 => format!("{} MiB", three(v / 1024.0 / 1024.0)),
        v => format!("{} GiB", three(v / 1024.0 / 1024.0 / 1024.0)),
    }
}

/// Formats three significant digits without trailing zeros.
fn three(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value}") } else { short(value) }
}

/// Formats a number with a noun in singular or plural: `1 thread`, `2 threads`.
pub(crate) fn plural(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{} {thing}s", count(number as u64)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_their_thousands_apart() {
        let shorts: Vec<String> = [0.144, 3.206, 9.999, 66.26, 99.99, 248.4, 12345.6].map(short).into();
        assert_eq!(shorts, ["0.14", "3.21", "10.0", "66.3", "100", "248", "12,346"]);
        let counts: Vec<String> = [0, 999, 1000, 1234567].map(count).into();
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567"]);
        let times: Vec<String> = [0.5, 999.0, 26_800.0, 5e7].map(time).into();
        assert_eq!(times, ["0.50 ns", "999 ns", "26.8 µs", "50.0 ms"]);
        let ratios: Vec<String> = [0.97, 4.24, 9.97, 1024.0].map(ratio).into();
        assert_eq!(ratios, ["1.0", "4.2", "10", "1,024"]);
    }

    #[test]
    fn large_numbers_come_in_words_and_sizes_in_units() {
        let abouts: Vec<String> = [99_999, 123_400, 999_999, 4_560_000_000].map(about).into();
        assert_eq!(abouts, ["99,999", "123 thousand", "1.00 million", "4.56 billion"]);
        let sizes: Vec<String> = [64, 12 << 10, 16_470_000, 3 << 29].map(bytes).into();
        assert_eq!(sizes, ["64 bytes", "12 KiB", "15.7 MiB", "1.50 GiB"]);
        assert_eq!([plural(1, "thread"), plural(2, "thread")], ["1 thread", "2 threads"]);
    }
}
