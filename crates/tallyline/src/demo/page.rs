//! The page of the demo: each step, and the cache lines before and after.

use super::samples::HotType;
use super::{LINE, Steps, percent, project};
use anyhow::Result;
use tallyline_layout::print::html::escape;
use tallyline_support::page;

const STYLE: &str = "
.lines { border-collapse: separate; border-spacing: 2px; table-layout: fixed; }
.lines td { border: 0; padding: .4rem .3rem; text-align: center; white-space: normal; background: var(--card); overflow: hidden; }
.lines td.field { background: color-mix(in srgb, #d9480f var(--heat), var(--card)); }
.lines td.worker1 { border-top: 4px solid #1c7ed6; } .lines td.worker2 { border-top: 4px solid #37b24d; }
.added { color: #2b8a3e; font-weight: 650; } .removed { color: #c92a2a; }
@media (prefers-color-scheme: dark) { .added { color: #69db7c; } .removed { color: #ff8787; } }
pre { background: var(--card); padding: .8rem 1rem; overflow-x: auto; }
";

/// Bytes of a cell of the drawing.
const WORD: u64 = 8;

/// Objects of neighbours that the drawing shows.
const OBJECTS: u64 = 2;

/// Returns the HTML page of the demo with all its steps.
pub(super) fn render(steps: &Steps) -> Result<String> {
    let speed_up = format!("{:.2} times the speed", steps.speed_up.median);
    let mut out = page::head(&format!("From a slow program to a faster one: {speed_up}"), STYLE)?;
    out.push_str("<main>\n<p class=\"eyebrow\">tallyline demo</p>\n");
    let verdict = match (&steps.after, steps.speed_up.median < 1.0) {
        (Some(_), _) => speed_up,
        (None, true) => "Slower on this machine: left as it was".to_owned(),
        (None, false) => "No gain on this machine: left as it was".to_owned(),
    };
    out.push_str(&format!("<h1>{verdict}</h1>\n<p class=\"lede\">{}</p>\n", escape(&lede(steps))));
    for (number, (name, lines)) in steps.lines().into_iter().enumerate() {
        out.push_str(&format!("<h2>{}. {name}</h2>\n", number + 1));
        if name == "apply" {
            out.push_str(&patch(&steps.patch));
            continue;
        }
        for line in lines {
            out.push_str(&format!("<p>{}</p>\n", escape(&sentence(&line))));
        }
        match name {
            "find" => out.push_str(&table("Before", &steps.before, steps.size, 1.0)),
            "measure" => {
                if let Some(after) = &steps.after {
                    out.push_str(&table("After", after, steps.new_size, steps.of_before(1.0)));
                }
            }
            _ => {}
        }
    }
    out.push_str(&format!(
        "<footer>{} CPUs, {} packets by each worker in a run. The same for a program of yours: \
         <code>tallyline advise --apply --build BUILD --measure COMMAND -- COMMAND</code></footer>\n",
        steps.cpus, steps.packets
    ));
    out.push_str("</main>\n</body>\n</html>\n");
    Ok(out)
}

/// Returns the page's first sentence.
fn lede(steps: &Steps) -> String {
    let about = project::ABOUT;
    let waited = match (&steps.after, steps.cpus) {
        (Some(_), 2..) => ", and each worker waited for the other's CPU to give it up",
        _ => "",
    };
    format!(
        "In {about}, the statistics of both shared a cache line{waited}. tallyline found that by samples of the clock, \
         edited the source, verified the new layout, and measured both."
    )
}

/// Returns a line as a sentence.
fn sentence(line: &str) -> String {
    let mut letters = line.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// Shows a patch, with what it adds and removes in colour.
fn patch(text: &str) -> String {
    let mut out = "<pre>".to_owned();
    for line in text.lines() {
        let class = match line.as_bytes() {
            [b'+', b'+', ..] | [b'-', b'-', ..] | [b'd' | b'i' | b'@', ..] => "muted",
            [b'+', ..] => "added",
            [b'-', ..] => "removed",
            _ => "",
        };
        out.push_str(&format!("<span class=\"{class}\">{}</span>\n", escape(line)));
    }
    out + "</pre>\n"
}

/// Draws the lines of neighbouring objects, each field with its part of the time as a colour: samples by a scale.
fn table(caption: &str, of: &HotType, size: u64, scale: f64) -> String {
    let lines = (size * OBJECTS).div_ceil(LINE);
    let mut out = format!(
        "<div class=\"scroll\"><table class=\"lines\">\n<caption>{caption}: a row is a cache line, a cell eight bytes; \
         the colour is the time at a field, of a run before.</caption>\n"
    );
    for line in 0..lines {
        out.push_str(&format!("<tr><th>line {}</th>", line + 1));
        for word in (line * LINE..(line + 1) * LINE).step_by(WORD as usize) {
            let (object, inside) = (word / size, word % size);
            let mut fields = of.fields.iter().filter(|_| object < OBJECTS);
            match fields.find(|field| (inside..inside + WORD).contains(&field.offset)) {
                Some(field) => {
                    let share = field.share * scale;
                    // half of the time has the full colour
                    let heat = (200.0 * share).min(100.0);
                    out.push_str(&format!(
                        "<td class=\"field worker{}\" style=\"--heat:{heat:.0}%\"><b>{}</b><br>worker {}</td>",
                        object + 1,
                        escape(&field.name),
                        object + 1,
                    ));
                }
                None => out.push_str("<td></td>"),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n<p class=\"muted\">");
    let shares = of.fields.iter().map(|field| format!("{} {}", field.name, percent(field.share * scale)));
    out.push_str(&escape(&shares.collect::<Vec<_>>().join(", ")));
    out.push_str(" of the time of a run before.</p>\n");
    out
}
