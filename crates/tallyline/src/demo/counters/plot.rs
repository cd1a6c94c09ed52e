//! Plots as inline SVG: bars with every round, and lines.
//!
//! Colours come from the page's style sheet by class, so that they follow light and dark; families
//! also differ in lightness, marks and dashes, for those who see no colours. Every plot has a title
//! and a description for screen readers, and names its lines and bars directly.

use std::fmt::Write;
use tallyline_layout::print::html::escape;

/// The width of all plots, in the units of their view box; heights follow from what they show.
const WIDTH: f64 = 760.0;

/// The title and description of an SVG plot, for screen readers.
pub(crate) struct Words<'w> {
    /// The prefix of the ids of the title and description elements, unique on the page.
    pub(crate) id: &'w str,
    /// The title of the plot.
    pub(crate) title: &'w str,
    /// The description of the plot's data.
    pub(crate) description: &'w str,
}

struct Svg(String);

impl Svg {
    fn new(words: &Words<'_>, height: f64) -> Svg {
        let Words { id, title, description } = words;
        let (title, description) = (escape(title), escape(description));
        Svg(format!(
            "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\">\n\
             <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-desc\">{description}</desc>\n"
        ))
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // a string takes everything
        let _ = self.0.write_fmt(element);
        self.0.push('\n');
    }

    fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escape(text);
        self.add(format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{text}</text>"));
    }

    fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        self.add(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>"
        ));
    }

    fn end(mut self) -> String {
        self.0.push_str("</svg>");
        self.0
    }
}

/// A bar of an SVG bar chart: its label, its length, its text.
pub(crate) struct Bar {
    /// The name of the bar, printed to its left.
    pub(crate) name: String,
    /// The CSS class that colours the bar.
    pub(crate) class: &'static str,
    /// The length of the bar, in the unit of the chart's scale.
    pub(crate) value: f64,
    /// The values of all rounds, drawn as dots over the bar.
    pub(crate) rounds: Vec<f64>,
    /// The texts of the two columns to the right of the bar.
    pub(crate) columns: [String; 2],
}

/// A group of bars under one heading in an SVG bar chart.
pub(crate) struct Panel {
    /// The heading of the panel.
    pub(crate) heading: String,
    /// The bars of the panel, from the top.
    pub(crate) bars: Vec<Bar>,
}

/// Draws an SVG bar chart of several panels on one scale: `words` are its title and description, `axis` labels the
/// scale, `heads` are the headings of the two columns of text beside the bars.
pub(crate) fn bars(words: &Words<'_>, axis: &str, heads: [&str; 2], panels: &[Panel]) -> String {
    const LEFT: f64 = 176.0;
    const RIGHT: f64 = 560.0;
    const ROW: f64 = 26.0;
    const HEAD: f64 = 34.0;
    const COLUMNS: [f64; 2] = [652.0, 748.0];
    let rows: usize = panels.iter().map(|panel| panel.bars.len()).sum();
    let bottom = HEAD * panels.len() as f64 + ROW * rows as f64 + 4.0;
    let all = || panels.iter().flat_map(|panel| &panel.bars);
    let longest = all().map(|bar| bar.value).fold(0.0, f64::max);
    // a single round that was disturbed must not make all bars short
    let farthest = all().flat_map(|bar| &bar.rounds).fold(longest, |most, &round| most.max(round));
    let scale = Scale::linear(farthest.min(longest * 1.5), LEFT, RIGHT);

    let mut svg = Svg::new(words, bottom + 44.0);
    for tick in &scale.ticks {
        let x = scale.at(*tick);
        svg.line((x, 20.0), (x, bottom), "grid");
        svg.text(x, bottom + 17.0, "tick middle", &tick_label(*tick));
    }
    svg.text(LEFT, bottom + 37.0, "axis", axis);
    let mut y = 0.0;
    for (index, panel) in panels.iter().enumerate() {
        svg.text(0.0, y + 22.0, "heading", &panel.heading);
        if index == 0 {
            for (head, x) in heads.into_iter().zip(COLUMNS) {
                svg.text(x, y + 22.0, "tick end", head);
            }
        }
        y += HEAD;
        for bar in &panel.bars {
            svg.text(LEFT - 10.0, y + 15.0, "name end", &bar.name);
            let (class, length) = (bar.class, (scale.at(bar.value) - LEFT).max(0.75));
            svg.add(format_args!(
                "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{:.1}\" rx=\"2\" class=\"bar {class}\"/>",
                y + 2.0,
                ROW - 8.0
            ));
            for (round, value) in bar.rounds.iter().enumerate() {
                // a golden step spreads the dots evenly over the height, in whatever number
                let spread = (round as f64 * 0.618_034).fract();
                let (x, y) = (scale.at(value.min(scale.end)), y + 5.0 + spread * (ROW - 14.0));
                svg.add(format_args!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.8\" class=\"dot {class}\"/>"
                ));
            }
            for (column, x) in bar.columns.iter().zip(COLUMNS) {
                svg.text(x, y + 15.0, "value end", column);
            }
            y += ROW;
        }
    }
    svg.line((LEFT, 20.0), (LEFT, bottom), "base");
    svg.end()
}

/// A data series of an SVG line plot: its points, label and marker.
pub(crate) struct Series {
    /// The name of the series, printed at the end of its line.
    pub(crate) name: String,
    /// The text after the name of the series.
    pub(crate) value: String,
    /// The CSS class that colours the series.
    pub(crate) class: &'static str,
    /// The marker at the points of the series.
    pub(crate) mark: Mark,
    /// The points (x, y) of the series, in the order of x.
    pub(crate) points: Vec<(f64, f64)>,
}

/// The marker of a line's points in an SVG plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Disc,
    Ring,
    Square,
    Diamond,
    /// No mark, and a thin dashed line: not measured.
    None,
}

/// The axes of an SVG line plot ([`lines`]): titles and ranges.
pub(crate) struct Axes<'a> {
    /// The label of x, with its unit.
    pub(crate) x: &'a str,
    /// The label of y, with its unit.
    pub(crate) y: &'a str,
    /// The values of x with a tick.
    pub(crate) ticks: &'a [f64],
    /// `true` if y is logarithmic; x always is.
    pub(crate) log: bool,
    /// Values of x that mean something.
    pub(crate) landmarks: &'a [(f64, &'a str)],
}

/// Draws an SVG line plot over a logarithmic x axis.
pub(crate) fn lines(words: &Words<'_>, axes: &Axes<'_>, series: &[Series]) -> String {
    const LEFT: f64 = 58.0;
    const RIGHT: f64 = 530.0;
    const TOP: f64 = 44.0;
    const BOTTOM: f64 = 300.0;
    let ends = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
    let points = || series.iter().flat_map(|series| &series.points);
    let (low_x, high_x) = points().map(|point| point.0).fold((f64::INFINITY, 1.0), ends);
    let (low_y, high_y) = points().map(|point| point.1).fold((f64::INFINITY, 0.0), ends);
    let x = Scale::log(low_x, high_x, LEFT, RIGHT);
    let y = if axes.log {
        Scale::log_decades(low_y, high_y, BOTTOM, TOP)
    } else {
        Scale::linear(high_y, BOTTOM, TOP)
    };

    let mut svg = Svg::new(words, BOTTOM + 46.0);
    svg.text(0.0, 14.0, "axis", axes.y);
    for &tick in &y.ticks {
        svg.line((LEFT, y.at(tick)), (RIGHT, y.at(tick)), "grid");
        svg.text(LEFT - 8.0, y.at(tick) + 4.0, "tick end", &tick_label(tick));
    }
    for (landmark, name) in axes.landmarks {
        svg.line((x.at(*landmark), TOP - 8.0), (x.at(*landmark), BOTTOM), "landmark");
        svg.text(x.at(*landmark), TOP - 13.0, "tick middle", name);
    }
    for &tick in axes.ticks {
        svg.line((x.at(tick), BOTTOM), (x.at(tick), BOTTOM + 4.0), "base");
        svg.text(x.at(tick), BOTTOM + 18.0, "tick middle", &tick_label(tick));
    }
    svg.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "base");
    svg.text(LEFT, BOTTOM + 40.0, "axis", axes.x);

    let place = |point: &(f64, f64)| (x.at(point.0), y.at(point.1));
    let ends: Vec<f64> =
        series.iter().filter_map(|line| line.points.last()).map(|last| y.at(last.1)).collect();
    let labels = spread(&ends, 17.0, BOTTOM);
    for (line, label) in series.iter().zip(labels) {
        let points: Vec<(f64, f64)> = line.points.iter().map(place).collect();
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dashed = match line.mark {
            Mark::None => " thin dashed",
            Mark::Ring | Mark::Diamond => " dashed",
            _ => "",
        };
        svg.add(format_args!(
            "<polyline points=\"{}\" class=\"path {}{dashed}\"/>",
            path.join(" "),
            line.class
        ));
        points.iter().for_each(|&(x, y)| mark(&mut svg, line, x, y));
        if let Some(&(x, y)) = points.last() {
            if (label - y).abs() > 1.0 {
                svg.line((x + 7.0, y), (x + 15.0, label), "leader");
            }
            let (name, value) = (escape(&line.name), escape(&line.value));
            svg.add(format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\" class=\"name\">{name} <tspan class=\"value\">{value}</tspan></text>",
                x + 18.0,
                label + 4.0
            ));
        }
    }
    svg.end()
}

fn mark(svg: &mut Svg, line: &Series, x: f64, y: f64) {
    let class = line.class;
    match line.mark {
        Mark::Disc => {
            svg.add(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\" class=\"{class}\"/>"))
        }
        Mark::Ring => {
            svg.add(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" class=\"hollow {class}\"/>"))
        }
        Mark::Square => svg.add(format_args!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"8.4\" height=\"8.4\" class=\"{class}\"/>",
            x - 4.2,
            y - 4.2
        )),
        Mark::Diamond => svg.add(format_args!(
            "<path d=\"M{x:.1} {:.1}l5 5l-5 5l-5 -5z\" class=\"hollow {class}\"/>",
            y - 5.0
        )),
        Mark::None => {}
    }
}

/// Moves labels apart until they are `room` from one another, none below `bottom`; they keep their
/// order.
fn spread(places: &[f64], room: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|&a, &b| places[a].total_cmp(&places[b]));
    let mut moved = places.to_vec();
    let mut last = f64::NEG_INFINITY;
    for &index in &order {
        moved[index] = moved[index].max(last + room);
        last = moved[index];
    }
    // whatever was pushed out at the bottom goes up again
    let mut limit = bottom;
    for &index in order.iter().rev() {
        moved[index] = moved[index].min(limit);
        limit = moved[index] - room;
    }
    moved
}

/// A scale of a plot, linear or logarithmic: maps values to coordinates.
struct Scale {
    log: bool,
    /// The smallest value on the scale; `end` is the largest.
    start: f64,
    end: f64,
    /// The coordinate of the smallest value; `to` is that of the largest.
    from: f64,
    to: f64,
    ticks: Vec<f64>,
}

impl Scale {
    /// Returns a linear scale from 0 to a round number above `most`.
    fn linear(most: f64, from: f64, to: f64) -> Scale {
        let most = if most > 0.0 { most } else { 1.0 };
        let rough = most / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|step| *step >= rough).unwrap_or(rough);
        let steps = (most / step).ceil() as usize;
        let ticks: Vec<f64> = (0..=steps).map(|n| n as f64 * step).collect();
        Scale { log: false, start: 0.0, end: steps as f64 * step, from, to, ticks }
    }

    fn log(low: f64, high: f64, from: f64, to: f64) -> Scale {
        let low = positive(low);
        let high = if high > low { high } else { low * 2.0 };
        Scale { log: true, start: low, end: high, from, to, ticks: Vec::new() }
    }

    /// Returns a logarithmic scale between whole decades.
    fn log_decades(low: f64, high: f64, from: f64, to: f64) -> Scale {
        let low = positive(low);
        let (first, last) = (low.log10().floor() as i32, high.max(low).log10().ceil() as i32);
        let scale = Scale::log(10f64.powi(first), 10f64.powi(last), from, to);
        Scale { ticks: (first..=last).map(|power| 10f64.powi(power)).collect(), ..scale }
    }

    fn at(&self, value: f64) -> f64 {
        let part = if self.log {
            (value / self.start).ln() / (self.end / self.start).ln()
        } else {
            (value - self.start) / (self.end - self.start)
        };
        self.from + part * (self.to - self.from)
    }
}

/// Returns a positive start of a logarithmic scale, also for empty data.
fn positive(low: f64) -> f64 {
    if low.is_finite() && low > 0.0 { low } else { 1.0 }
}

/// Returns a tick's number, without digits that say nothing.
fn tick_label(value: f64) -> String {
    if value >= 1000.0 {
        return super::figures::count(value.round() as u64);
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_scales_end_at_something_round() {
        let scale = Scale::linear(69.0, 0.0, 100.0);
        assert_eq!(scale.ticks, [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!((scale.at(0.0), scale.at(40.0), scale.at(80.0)), (0.0, 50.0, 100.0));
        let labels: Vec<String> = [0.0, 0.25, 20.0, 1500.0].map(tick_label).into();
        assert_eq!(labels, ["0", "0.25", "20", "1,500"]);
    }

    #[test]
    fn logarithmic_scales_span_whole_decades() {
        let scale = Scale::log_decades(3.0, 1800.0, 0.0, 4.0);
        assert_eq!(scale.ticks, [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
        assert!((scale.at(100.0) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn labels_move_apart_and_stay_inside() {
        let places = spread(&[100.0, 295.0, 298.0, 299.0], 17.0, 300.0);
        assert_eq!(places[0], 100.0);
        assert!(places[3] <= 300.0);
        assert!(places[2] - places[1] >= 17.0 && places[3] - places[2] >= 17.0);
    }

    #[test]
    fn nothing_in_a_name_becomes_markup() {
        assert_eq!(escape("a<b & \"c\"'"), "a&lt;b &amp; &quot;c&quot;&#39;");
        let words = Words { id: "t", title: "<t>", description: "&" };
        let bar = Bar {
            name: "<n>".into(),
            class: "statctr",
            value: 1.0,
            rounds: vec![1.0, 9.0],
            columns: ["<".into(), ">".into()],
        };
        let svg = bars(&words, "ns", ["a", "b"], &[Panel { heading: "h".into(), bars: vec![bar] }]);
        assert!(!svg.contains("<n>") && !svg.contains("<t>"));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"));
    }

    #[test]
    fn a_plot_of_one_point_and_of_nothing_is_no_trouble() {
        let words = Words { id: "t", title: "t", description: "d" };
        let axes = Axes { x: "x", y: "y", ticks: &[1.0], log: false, landmarks: &[] };
        let one = Series {
            name: "n".into(),
            value: "v".into(),
            class: "statctr",
            mark: Mark::Disc,
            points: vec![(1.0, 0.0)],
        };
        for series in [vec![one], vec![]] {
            let svg = lines(&words, &axes, &series);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
