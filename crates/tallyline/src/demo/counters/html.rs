//! The results as one page that needs no network, no script and no other file.
//!
//! The frame and the style sheet lie under `page/`; this file fills in numbers, tables and plots.

use super::figures::{about, bytes, count, plural, ratio, short, time};
use super::plot::{self, Axes, Bar, Mark, Panel, Series, Words};
use super::result::{Case, Results, counted};
use anyhow::{Context, Result};
use std::io::Write;
use std::path::Path;
use tallyline_counting::checks::Watched;
use tallyline_counting::reading::{Cost, POSSIBLE, PRESENT, SHARED, STATCTR, What};
use tallyline_counting::{Family, LABELS, Label, ONE_COMMIT};
use tallyline_layout::print::html::escape;
use tallyline_support::page::{self, fill};
use tallyline_support::replacement::Replacement;

const FRAME: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");

/// An HTML page with the results of `tallyline demo counters`, written under a temporary name and renamed when
/// complete, so that an interrupted run leaves an older page intact.
pub(crate) struct Page(Replacement);

impl Page {
    /// Creates the temporary file of the HTML page, which shows that it can be written before the demo runs.
    pub(crate) fn create(path: &Path) -> Result<Page> {
        let page = Replacement::create(path).with_context(|| {
            format!(
                "cannot write {}; name another file with -o, or do without with --no-html",
                path.display()
            )
        })?;
        Ok(Page(page))
    }

    /// Writes the HTML page with the demo's results, renames it to its final name, and returns its path.
    pub(crate) fn write(mut self, results: &Results) -> Result<String> {
        let name = self.0.path().display().to_string();
        let failed = || format!("cannot write {name}; name another file with -o");
        self.0.write_all(render(results)?.as_bytes()).with_context(failed)?;
        self.0.finish().with_context(failed)?;
        Ok(name)
    }
}

/// Returns the HTML page with the demo's results.
fn render(results: &Results) -> Result<String> {
    let machine = &results.machine;
    let kind = if machine.virtual_machine == Some(true) { ", virtual machine" } else { "" };
    let fields: Vec<(&str, String)> = vec![
        ("version", escape(env!("CARGO_PKG_VERSION"))),
        ("head", page::head(&format!("Counting packets: {}", escape(&short_title(results))), STYLE)?),
        ("machine-short", escape(&format!("{}, {}{kind}", machine.cpu, plural(machine.cpus, "CPU")))),
        ("date", date(results.unix_time)),
        ("title", title(results)),
        ("headline", lede(results)),
        ("notes", notes(results)),
        ("tiles", tiles(results)),
        ("interfaces", results.interfaces.to_string()),
        ("counters", (results.interfaces * results.counters_per_packet).to_string()),
        ("plot-cost", plot_cost(results)),
        ("ratio-words", ratio_words(results)),
        ("more-threads", more_threads(results)),
        ("table-exactness", table_exactness(results)),
        ("watch-words", watch_words(results)),
        ("table-watched", table_watched(results)),
        ("table-reads", table_reads(results)),
        ("plot-reads", plot_reads(results)),
        ("possible", POSSIBLE.to_string()),
        ("present", PRESENT.to_string()),
        ("memory-words", memory_words(results)),
        ("plot-memory", plot_memory(results)),
        ("counting", counted(&results.memory_of_many)),
        ("method", method(results)),
        ("table-machine", table_machine(results)),
        ("table-cases", table_cases(results)),
        ("table-all-reads", table_all_reads(results)),
        ("seconds", short(results.seconds)),
    ];
    fill(FRAME, &fields)
}

/// Formats the date and the time of day in UTC.
fn date(unix_time: u64) -> String {
    let (days, seconds) = (unix_time / 86_400, unix_time % 86_400);
    // Howard Hinnant's `civil_from_days`: years that begin in March end with the leap day
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + carry;
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", seconds / 3600, seconds / 60 % 60)
}

fn class(family: Family) -> &'static str {
    match family {
        Family::Nobody => "nobody",
        Family::Atomics => "atomics",
        Family::Statctr => "statctr",
    }
}

/// Returns the best shared atomics and our counters, with all threads.
fn rivals(results: &Results) -> Option<(&Case, &Case)> {
    let threads = results.most_threads();
    Some((results.best_atomics(threads)?, results.case(&LABELS[ONE_COMMIT], threads)?))
}

fn short_title(results: &Results) -> String {
    match rivals(results) {
        Some((shared, ours)) => format!("{} ns or {} ns", short(shared.median), short(ours.median)),
        None => "nothing measured".into(),
    }
}

fn title(results: &Results) -> String {
    match rivals(results) {
        Some((shared, ours)) => format!(
            "Counting a packet: <span class=\"atomics-text\">{}&nbsp;ns</span> with shared atomics, \
             <span class=\"statctr-text\">{}&nbsp;ns</span> with statctr",
            short(shared.median),
            short(ours.median)
        ),
        None => "Nothing could be measured".into(),
    }
}

/// Returns the rest of the sentence on top.
fn lede(results: &Results) -> String {
    let costs = results.comparison().unwrap_or_else(|| "Nothing could be measured".into());
    escape(&format!("That is {costs}, on this machine; {}.", results.verdict()))
}

fn notes(results: &Results) -> String {
    let quick =
        results.quick.then(|| "A quick run: few and short rounds, the figures mean little.".to_owned());
    let notes = quick.iter().chain(&results.notes);
    notes.map(|note| format!("<p class=\"note\">{}</p>\n", escape(note))).collect()
}

fn tiles(results: &Results) -> String {
    let mut tiles = String::new();
    let mut tile = |class: &str, figure: &str, words: &str| {
        let (figure, words) = (escape(figure), escape(words));
        tiles.push_str(&format!("<li class=\"{class}\"><strong>{figure}</strong>{words}</li>\n"));
    };
    let threads = results.most_threads();
    if let Some(found) = rivals(results).and_then(|(shared, _)| results.ratio(shared.label, threads)) {
        let (factor, than) =
            if found.median >= 1.0 { (found.median, "less") } else { (1.0 / found.median, "more") };
        let words =
            format!("{than} time per packet than with shared atomics, at {}", plural(threads, "thread"));
        tile("", &format!("{}×", ratio(factor)), &words);
    }
    let wrong: u64 = results.exactness.iter().map(|check| check.lost.saturating_add(check.doubled)).sum();
    let class = if results.exact { "" } else { "bad" };
    tile(class, &count(wrong), &format!("counts lost or doubled in {} packets", about(results.packets())));
    if let Some(seen) = results.watched.iter().find(|seen| seen.case == LABELS[ONE_COMMIT].key) {
        let class = if seen.pairs_promised && seen.misfits > 0 { "bad" } else { "" };
        let words = format!("of {} reads saw packets apart from their bytes", about(seen.reads));
        tile(class, &count(seen.misfits), &words);
    }
    let read = |case| results.reads_of(What::Counter, case, false).next().map(|cost| time(cost.median));
    if let (Some(ours), Some(shared)) = (read(STATCTR), read(SHARED)) {
        tile("", &ours, &format!("to read one counter: the price ({shared} with an atomic)"));
    }
    if results.memory.is_apart() {
        let each = format!("{} bytes", results.memory.bytes_per_counter_per_cpu);
        tile("", &each, "per counter on each CPU that counts; groups take whole lines");
    }
    tiles
}

fn plot_cost(results: &Results) -> String {
    let mut threads = vec![1, results.most_threads()];
    threads.dedup();
    let panels: Vec<Panel> = threads
        .iter()
        .map(|&threads| {
            let cases = LABELS.iter().filter_map(|label| results.case(label, threads));
            let bars = cases.map(|case| Bar {
                name: case.label.name.into(),
                class: class(case.label.family),
                value: case.median,
                rounds: case.series.clone(),
                columns: [format!("{} ns", short(case.median)), ratio_cell(results, case.label, threads)],
            });
            Panel { heading: plural(threads, "thread"), bars: bars.collect() }
        })
        .collect();
    let description = panels.iter().map(|panel| {
        let bars: Vec<String> =
            panel.bars.iter().map(|bar| format!("{}: {}", bar.name, bar.columns[0])).collect();
        format!("{}: {}. ", panel.heading, bars.join(", "))
    });
    let words = Words {
        id: "cost",
        title: "Nanoseconds that one packet costs, by way to count and number of threads",
        description: &description.collect::<String>(),
    };
    plot::bars(&words, "nanoseconds of one thread per packet (4 counters)", ["median", "ratio"], &panels)
}

fn ratio_cell(results: &Results, label: &Label, threads: usize) -> String {
    match results.ratio(label, threads) {
        Some(found) => format!("{}×", ratio(found.median)),
        None if *label == LABELS[ONE_COMMIT] => "1×".into(),
        None => String::new(),
    }
}

fn ratio_words(results: &Results) -> String {
    let threads = results.most_threads();
    let spread = rivals(results).and_then(|(shared, _)| results.ratio(shared.label, threads)).map(|found| {
        format!(
            " at {} the better atomics came to {} to {} times in single rounds",
            plural(threads, "thread"),
            ratio(found.min),
            ratio(found.max)
        )
    });
    format!(
        "The ratio is to one commit, the median of the rounds&#39; own ratios;{}.",
        spread.unwrap_or_default()
    )
}

/// Returns a section of its own, where there is more than one number of threads.
fn more_threads(results: &Results) -> String {
    if results.threads.len() < 2 {
        return String::new();
    }
    let millions = |case: &Case| case.packets_per_second / 1e6;
    let marks = [Mark::Disc, Mark::Ring, Mark::Diamond, Mark::Square];
    let labels = LABELS.iter().filter(|label| label.family != Family::Nobody);
    let mut series: Vec<Series> = Vec::new();
    for (label, mark) in labels.zip(marks) {
        let cases: Vec<&Case> = results.cases.iter().filter(|case| case.label == label).collect();
        series.push(Series {
            name: label.name.into(),
            value: cases.last().map_or(String::new(), |case| short(millions(case))),
            class: class(label.family),
            mark,
            points: cases.iter().map(|case| (case.threads as f64, millions(case))).collect(),
        });
    }
    if let Some(alone) = results.case(&LABELS[ONE_COMMIT], 1) {
        series.push(Series {
            name: "perfect scaling".into(),
            value: String::new(),
            class: "nobody",
            mark: Mark::None,
            points: results.threads.iter().map(|&n| (n as f64, n as f64 * millions(alone))).collect(),
        });
    }
    let described: Vec<String> = series
        .iter()
        .filter(|line| line.mark != Mark::None)
        .map(|line| {
            let points: Vec<String> =
                line.points.iter().map(|(n, rate)| format!("{} at {n}", short(*rate))).collect();
            format!("{}: {}", line.name, points.join(", "))
        })
        .collect();
    let words = Words {
        id: "rate",
        title: "Million packets counted per second by all threads together, by number of threads",
        description: &described.join(". "),
    };
    let ticks: Vec<f64> = results.threads.iter().map(|&n| n as f64).collect();
    // over a wide range only logarithms show what falls beside what rises, and make scaling a line
    let log = results.threads.len() > 3;
    let axes = Axes {
        x: if log {
            "threads, each on a CPU of its own (both axes logarithmic)"
        } else {
            "threads, each on a CPU of its own"
        },
        y: "million packets counted per second, all threads together",
        ticks: &ticks,
        log,
        landmarks: &[],
    };
    let plot = plot::lines(&words, &axes, &series);
    format!(
        "<h2>What more threads bring</h2>\n<p>With words of their own, threads count side by side; with shared \
         words each further thread makes all of them wait.</p>\n<figure>\n<div class=\"scroll\">\n{plot}\n</div>\n\
         <figcaption>Medians of the rounds. The dotted line is not measured: it is one thread&#39;s rate with one \
         commit, times the threads. CPUs that share a core or are shared with other programs stay below \
         it.</figcaption>\n</figure>"
    )
}

/// A table; the first cell of each row heads it. Cells are markup.
struct Table {
    caption: &'static str,
    heads: Vec<String>,
    rows: Vec<Row>,
}

enum Row {
    /// A heading for the rows that follow.
    Group(String),
    Cells(Vec<String>),
}

impl Table {
    fn new(caption: &'static str, heads: &[&str]) -> Table {
        Table { caption, heads: heads.iter().map(|head| escape(head)).collect(), rows: Vec::new() }
    }

    fn group(&mut self, heading: &str) {
        self.rows.push(Row::Group(escape(heading)));
    }

    fn row(&mut self, cells: Vec<String>) {
        self.rows.push(Row::Cells(cells));
    }

    fn html(&self) -> String {
        let heads: String = self.heads.iter().map(|head| format!("<th scope=\"col\">{head}</th>")).collect();
        let rows = self.rows.iter().map(|row| match row {
            Row::Group(heading) => {
                let span = self.heads.len();
                format!("<tr class=\"group\"><th colspan=\"{span}\" scope=\"rowgroup\">{heading}</th></tr>\n")
            }
            Row::Cells(cells) => {
                let (first, others) =
                    cells.split_first().map_or(("", &[][..]), |(first, others)| (first, others));
                let others: String = others.iter().map(|cell| format!("<td>{cell}</td>")).collect();
                format!("<tr><th scope=\"row\">{first}</th>{others}</tr>\n")
            }
        });
        format!(
            "<div class=\"scroll\"><table>\n<caption>{}</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{}</tbody>\n</table></div>",
            escape(self.caption),
            rows.collect::<String>()
        )
    }
}

fn name_of(key: &str) -> String {
    escape(LABELS.iter().find(|label| label.key == key).map_or(key, |label| label.name))
}

fn table_exactness(results: &Results) -> String {
    let heads = [
        "CountingMethod to count",
        "Packets counted",
        "Counters that were wrong",
        "Lost",
        "Doubled",
        "Verdict",
    ];
    let mut table = Table::new("Sums against what the threads did; all phases of the demo", &heads);
    for check in &results.exactness {
        let (class, verdict) = if check.holds() { ("good", "exact") } else { ("bad", "WRONG") };
        table.row(vec![
            name_of(&check.case),
            count(check.packets),
            format!("{} of {}", check.wrong, check.counters),
            count(check.lost),
            count(check.doubled),
            format!("<span class=\"{class}\">{verdict}</span>"),
        ]);
    }
    table.html()
}

fn watch_words(results: &Results) -> String {
    let Some(ours) = results.watched.iter().find(|seen| seen.case == LABELS[ONE_COMMIT].key) else {
        return String::new();
    };
    let moved = if ours.moves > 0 {
        format!(" and move from CPU to CPU ({} times with one commit)", count(ours.moves))
    } else {
        String::new()
    };
    let promise = if ours.pairs_promised {
        "With one commit they always do: that is promised, and seen."
    } else {
        "In the mode that statctr is in here it makes no promise about that."
    };
    format!(
        "{} count{moved} while a reader reads interface after interface, all four counters at once. No counter may \
         ever go down. Each interface carries packets of one length, so their number and their bytes must fit \
         together. {promise} That a packet is seen received and sent at once (the last column) nobody promises; the \
         figure is what was measured.",
        plural(ours.writers, "thread")
    )
}

fn table_watched(results: &Results) -> String {
    let heads = [
        "CountingMethod to count",
        "Interfaces read",
        "Counters that went down",
        "Packets apart from bytes",
        "Received apart from sent",
    ];
    let mut table = Table::new("What a reader saw while threads counted and moved", &heads);
    for seen in &results.watched {
        table.row(vec![
            name_of(&seen.case),
            count(seen.reads),
            verdict(seen.went_down, true, seen.went_down),
            misfits(seen),
            share(seen.split_events, seen.reads),
        ]);
    }
    table.html()
}

fn misfits(seen: &Watched) -> String {
    if seen.pairs_promised {
        verdict(seen.misfits, true, seen.misfits)
    } else {
        share(seen.misfits, seen.reads)
    }
}

fn verdict(found: u64, good: bool, bad: u64) -> String {
    let class = if bad > 0 {
        "bad"
    } else if good {
        "good"
    } else {
        ""
    };
    format!("<span class=\"{class}\">{}</span>", count(found))
}

fn share(some: u64, all: u64) -> String {
    match (some, 100.0 * some as f64 / all.max(1) as f64) {
        (0, _) => "0".into(),
        (_, percent) if percent < 0.01 => format!("{} (&lt; 0.01 %)", count(some)),
        (_, percent) => format!("{} ({} %)", count(some), short(percent)),
    }
}

fn table_reads(results: &Results) -> String {
    let cpus = results.reads_of(What::Counter, STATCTR, false).map(|cost| cost.cpus).max().unwrap_or(0);
    let ours = if cpus > 0 { format!("statctr, {} counted", plural(cpus, "CPU")) } else { "statctr".into() };
    let mut table = Table::new("On this machine; medians", &["What is read", "shared atomics", &ours]);
    for what in What::ALL {
        let cell =
            |case| results.reads_of(what, case, false).next().map_or(String::new(), |cost| time(cost.median));
        table.row(vec![escape(what.name()), cell(SHARED), cell(STATCTR)]);
    }
    table.html()
}

fn plot_reads(results: &Results) -> String {
    let marks = [Mark::Disc, Mark::Ring, Mark::Square];
    let series: Vec<Series> = What::ALL
        .into_iter()
        .zip(marks)
        .map(|(what, mark)| {
            let costs: Vec<&Cost> = results.reads_of(what, STATCTR, true).collect();
            Series {
                name: what.short_name().into(),
                value: costs.last().map_or(String::new(), |cost| time(cost.median)),
                class: "statctr",
                mark,
                points: costs.iter().map(|cost| (cost.cpus as f64, cost.median)).collect(),
            }
        })
        .collect();
    let described: Vec<String> = series
        .iter()
        .map(|line| {
            let points: Vec<String> =
                line.points.iter().map(|(cpus, cost)| format!("{} with {cpus}", time(*cost))).collect();
            format!("{}: {}", line.name, points.join(", "))
        })
        .collect();
    let words = Words {
        id: "reads",
        title: "Nanoseconds that one read costs, by the number of made-up CPUs that counted",
        description: &described.join(". "),
    };
    let (present, possible) = (format!("{PRESENT} present"), format!("{POSSIBLE} possible"));
    let axes = Axes {
        x: "CPUs that counted (made up; both axes logarithmic)",
        y: "nanoseconds per read, statctr",
        ticks: &[1.0, 2.0, 4.0, 8.0, 16.0, f64::from(PRESENT), 64.0, f64::from(POSSIBLE)],
        log: true,
        landmarks: &[(f64::from(PRESENT), &present), (f64::from(POSSIBLE), &possible)],
    };
    plot::lines(&words, &axes, &series)
}

fn memory_words(results: &Results) -> String {
    let (own, many) = (&results.memory, &results.memory_of_many);
    let each = if own.is_apart() {
        format!(
            "A counter takes {} bytes on each CPU that counts, and a group whole cache lines (here four counters on \
             one of 64 bytes); CPUs that never count take address space and no memory.",
            own.bytes_per_counter_per_cpu
        )
    } else {
        "In the mode that statctr is in here a counter is one word for all CPUs.".into()
    };
    format!(
        "{each} The {} of this demo ({}) are resident in {}, whole pages; {} on a made-up machine ({}) in {}.",
        plural(own.counters, "counter"),
        counted(own),
        bytes(own.resident_bytes),
        plural(many.counters, "counter"),
        counted(many),
        bytes(many.resident_bytes)
    )
}

fn plot_memory(results: &Results) -> String {
    let many = &results.memory_of_many;
    let mebibytes = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let bar = |name: String, class, size: usize, kind: &str| Bar {
        name,
        class,
        value: mebibytes(size),
        rounds: Vec::new(),
        columns: [bytes(size), kind.into()],
    };
    let all = plural(many.possible_cpus, "CPU");
    let bars = vec![
        bar(counted(many), "statctr", many.resident_bytes, "resident"),
        bar(format!("memory for all {all}"), "arithmetic", many.bytes_if_all_cpus_had_memory, "arithmetic"),
    ];
    let heading = plural(many.counters, "counter");
    let description: Vec<String> =
        bars.iter().map(|bar| format!("{}: {} ({})", bar.name, bar.columns[0], bar.columns[1])).collect();
    let title = format!("Mebibytes that {heading} take");
    let words = Words { id: "memory", title: &title, description: &description.join(". ") };
    plot::bars(&words, "mebibytes (MiB)", ["", ""], &[Panel { heading, bars }])
}

fn method(results: &Results) -> String {
    let rounds = results.cases.first().map_or(0, |case| case.rounds);
    format!(
        "<p>In each of {rounds} rounds every way ran once, for the same time, in an order that turned from round to \
         round; a first round was left out. Each thread was kept on a CPU of its own and took its own time; a \
         round&#39;s figure is the time of all threads over the packets of all threads. Packets go round {} interfaces, each thread starting at another \
         one, in lengths of 64, 594 and 1518 bytes (a mix of small, middle and large packets).</p>\n\
         <p><em>Shared atomics</em>: four 64-bit words per interface and relaxed additions; <em>padded</em>: each \
         interface on cache lines of its own. The sentence on top compares with whichever of the two did better. \
         <em>Four updates</em> and <em>one commit</em>: groups of <code>statctr</code>, counter by counter and by one \
         vector store. This machine was used as it was found: other programs and a hypervisor show as spread.</p>",
        results.interfaces
    )
}

fn table_machine(results: &Results) -> String {
    let machine = &results.machine;
    let size = |bytes: Option<u64>| bytes.map_or("unknown".into(), bytes_of);
    let caches = [machine.l1d_bytes, machine.l2_bytes, machine.llc_bytes].map(size).join(" + ");
    let virtual_machine = match machine.virtual_machine {
        Some(true) => "yes",
        Some(false) => "no",
        None => "the system does not say",
    };
    let rows = [
        ("Processor", format!("{} ({})", machine.cpu, machine.architecture)),
        ("CPUs", format!("{} to run on; possible: {}", machine.cpus, machine.possible)),
        ("Virtual machine", virtual_machine.into()),
        ("Caches (first level data, second, last), as reported", caches),
        ("Memory", size(machine.memory_bytes)),
        ("Linux", machine.kernel.clone()),
        ("Load when it began", machine.load.map_or("unknown".into(), |load| load.to_string())),
        ("How statctr updates here", format!("{}, vectors of {} bytes", results.mode, results.vector_bytes)),
        (
            "Versions",
            format!(
                "tallyline {}, statctr {}, {} build",
                env!("CARGO_PKG_VERSION"),
                machine.statctr,
                machine.build
            ),
        ),
    ];
    let mut table = Table::new("The machine", &["", ""]);
    rows.into_iter().for_each(|(name, value)| table.row(vec![escape(name), escape(&value)]));
    table.html().replace("<td>", "<td class=\"words\">")
}

fn bytes_of(size: u64) -> String {
    bytes(usize::try_from(size).unwrap_or(usize::MAX))
}

fn table_cases(results: &Results) -> String {
    let heads =
        ["CountingMethod to count", "Median", "Fastest", "Slowest", "Rounds", "Ratio", "Million packets/s"];
    let mut table = Table::new(
        "One packet, in nanoseconds of one thread; ratio to one commit; rate of all threads",
        &heads,
    );
    for &threads in &results.threads {
        table.group(&plural(threads, "thread"));
        for case in LABELS.iter().filter_map(|label| results.case(label, threads)) {
            table.row(vec![
                escape(case.label.name),
                short(case.median),
                short(case.min),
                short(case.max),
                case.rounds.to_string(),
                ratio_cell(results, case.label, threads),
                short(case.packets_per_second / 1e6),
            ]);
        }
    }
    table.html()
}

fn table_all_reads(results: &Results) -> String {
    let heads = ["What is read", "CPUs that counted", "Median", "Fastest", "Slowest"];
    let mut table = Table::new("One read, in nanoseconds", &heads);
    for (case, made_up, heading) in [
        (SHARED, false, "shared atomics, this machine"),
        (STATCTR, false, "statctr, this machine"),
        (STATCTR, true, "statctr, made-up machine"),
    ] {
        table.group(heading);
        for cost in results.reads.iter().filter(|cost| cost.case == case && cost.made_up == made_up) {
            let cpus = if case == SHARED { "–".into() } else { cost.cpus.to_string() };
            table.row(vec![
                escape(cost.what.name()),
                cpus,
                short(cost.median),
                short(cost.min),
                short(cost.max),
            ]);
        }
    }
    table.html()
}

#[cfg(test)]
mod tests {
    use super::super::result::tests::sample;
    use super::*;
    use std::fs;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (time, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_767_225_599, "2025-12-31 23:59 UTC"),
            (1_792_550_000, "2026-10-21 02:33 UTC"),
        ] {
            assert_eq!(date(time), text);
        }
    }

    #[test]
    fn machines_of_all_sizes_and_moods_fit_the_page() {
        for threads in [&[1][..], &[1, 2], &[1, 2, 4, 8, 16, 32, 64, 96]] {
            let mut results = sample(threads);
            let page = render(&results).expect("page");
            assert!(!page.contains("NaN") && !page.contains("inf,"));
            assert_eq!(page.contains("What more threads bring"), threads.len() > 1);
            assert!(page.contains("&lt;odd&gt; &amp; busy"), "notes are text");
            assert!(!page.contains("class=\"bad\""));
            // what went wrong can be seen
            results.exact = false;
            results.exactness[0].wrong = 1;
            assert!(render(&results).expect("page").contains("<span class=\"bad\">WRONG"));
        }
    }

    #[test]
    fn a_page_that_is_not_finished_leaves_nothing_behind() {
        let folder = std::env::temp_dir().join(format!("tallyline-page-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("folder");
        let path = folder.join("page.html");
        fs::write(&path, "old").expect("old page");
        drop(Page::create(&path).expect("page"));
        assert_eq!(fs::read_to_string(&path).expect("still there"), "old");
        assert_eq!(fs::read_dir(&folder).expect("folder").count(), 1);
        assert!(Page::create(&folder).is_err());
        assert!(Page::create(&folder.join("none/page.html")).is_err());
        fs::remove_dir_all(&folder).expect("clean");
    }
}
