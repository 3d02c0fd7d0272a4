//! Lines over time, as SVG.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 15.0;
const TOP: f64 = 35.0;
const BOTTOM: f64 = 45.0;

/// A picture of lines over one axis of time, in a file beside the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Picture {
    /// The name of its file.
    pub file: String,
    /// The title.
    pub title: String,
    /// The vertical axis, with its unit.
    pub vertical: String,
    /// The lines; each consists of points (seconds, value), ascending in time.
    pub lines: Vec<Vec<(f64, f64)>>,
}

impl Picture {
    /// Renders the picture. The axes begin at zero and end at a round number.
    pub fn render(&self) -> String {
        let all = || self.lines.iter().flatten();
        let end = round_up(all().map(|point| point.0).fold(0.0, f64::max));
        let top = round_up(all().map(|point| point.1).fold(0.0, f64::max));
        let x = |seconds: f64| LEFT + seconds / end * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
        let mut svg = frame(&self.title, "seconds", &self.vertical);
        for tick in 0..=5 {
            let share = f64::from(tick) / 5.0;
            axis_tick(&mut svg, x(end * share), y(top * share), end * share, top * share);
        }
        for (number, line) in self.lines.iter().enumerate() {
            polyline(&mut svg, number, self.lines.len(), line.iter().map(|p| (x(p.0), y(p.1))));
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// Named points: name, horizontal and vertical value.
#[derive(Clone, Debug, Default)]
pub struct Marks(pub Vec<(String, f64, f64)>);

/// Points in a plane whose horizontal axis is logarithmic.
#[derive(Clone, Debug)]
pub struct Scatter {
    /// The title.
    pub title: String,
    /// The horizontal axis, with its unit.
    pub horizontal: String,
    /// The vertical axis, with its unit.
    pub vertical: String,
    /// Points that are joined by a line.
    pub line: Marks,
    /// Points of their own.
    pub marks: Marks,
}

impl Scatter {
    /// Renders the picture. The horizontal axis begins and ends at a power of ten, and the vertical
    /// one begins at zero.
    pub fn render(&self) -> String {
        let all = || self.line.0.iter().chain(&self.marks.0);
        let decades = |of: fn(f64, f64) -> f64, start| {
            all().map(|mark| mark.1.max(LEAST_ON_LOG_AXIS).log10()).fold(start, of)
        };
        let from = decades(f64::min, f64::INFINITY).floor();
        let to = decades(f64::max, f64::NEG_INFINITY).ceil().max(from + 1.0);
        let top = round_up(all().map(|mark| mark.2).fold(0.0, f64::max));
        let x = |value: f64| {
            let share = (value.max(LEAST_ON_LOG_AXIS).log10() - from) / (to - from);
            LEFT + share * (WIDTH - LEFT - RIGHT)
        };
        let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
        let mut svg = frame(&self.title, &self.horizontal, &self.vertical);
        for decade in 0..=(to - from) as u32 {
            let value = 10.0_f64.powf(from + f64::from(decade));
            axis_tick(&mut svg, x(value), y(0.0), value, 0.0);
        }
        for tick in 1..=5 {
            let value = top * f64::from(tick) / 5.0;
            axis_tick(&mut svg, LEFT, y(value), 10.0_f64.powf(from), value);
        }
        polyline(&mut svg, 0, 1, self.line.0.iter().map(|mark| (x(mark.1), y(mark.2))));
        for (name, value, height) in &self.line.0 {
            circle(&mut svg, (x(*value), y(*height)), 2.5, "#888", name, 9);
        }
        for (number, (name, value, height)) in self.marks.0.iter().enumerate() {
            let colour = format!("hsl({} 65% 40%)", 210 + number * 70);
            circle(&mut svg, (x(*value), y(*height)), 5.0, &colour, name, 12);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// Smaller values are drawn at this one.
const LEAST_ON_LOG_AXIS: f64 = 0.1;

fn circle(svg: &mut String, (x, y): (f64, f64), radius: f64, colour: &str, name: &str, size: u32) {
    let _ = writeln!(
        svg,
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{size}\" fill=\"{colour}\">{}</text>",
        x + radius + 1.0,
        y - radius,
        escaped(name),
    );
}

/// The beginning of a picture: its title and the names of its axes.
fn frame(title: &str, horizontal: &str, vertical: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{}\" y=\"20\" text-anchor=\"middle\" font-size=\"14\">{}</text>\n\
         <text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
         <text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        WIDTH / 2.0,
        escaped(title),
        f64::midpoint(LEFT, WIDTH - RIGHT),
        HEIGHT - 8.0,
        escaped(horizontal),
        f64::midpoint(TOP, HEIGHT - BOTTOM),
        escaped(vertical),
    )
}

fn axis_tick(svg: &mut String, x: f64, y: f64, seconds: f64, value: f64) {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    let _ = writeln!(
        svg,
        "<path d=\"M{LEFT} {y:.1}H{right}M{x:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/>\n\
         <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        bottom + 16.0,
        plain(seconds),
        LEFT - 6.0,
        y + 4.0,
        plain(value),
    );
}

fn polyline(
    svg: &mut String,
    number: usize,
    count: usize,
    points: impl Iterator<Item = (f64, f64)>,
) {
    let hue = number * 360 / count.max(1);
    let _ = write!(svg, "<polyline fill=\"none\" stroke=\"hsl({hue} 65% 45%)\" points=\"");
    for (x, y) in points {
        let _ = write!(svg, "{x:.1},{y:.1} ");
    }
    svg.push_str("\"/>\n");
}

/// The least value not below `value` that is 1, 2, 3, 4, 5, 6, 8 or 10 times a power of ten.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10.0_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|end| *end >= value).unwrap_or(value)
}

fn plain(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_a_line_for_each_line_and_stays_within_its_frame() {
        let line = vec![(0.0, 0.0), (7.0, 23.0)];
        let plot = Picture {
            file: "a.svg".to_owned(),
            title: "a < b".to_owned(),
            vertical: "Mbit/s".to_owned(),
            lines: vec![line.clone(), line],
        };
        let svg = plot.render();
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains("a &lt; b"));
        // The point (0, 0) is in the corner. The axes end at 8 s and at 30 Mbit/s.
        assert!(svg.contains("60.0,315.0 "), "{svg}");
        assert!(svg.contains(&format!(
            "{:.1},{:.1} ",
            60.0 + 785.0 * 0.875,
            315.0 - 280.0 * 23.0 / 30.0
        )));
    }

    #[test]
    fn a_scatter_has_a_mark_for_each_point_and_equal_steps_for_equal_factors() {
        let mark = |name: &str, x, y| (name.to_owned(), x, y);
        let svg = Scatter {
            title: String::new(),
            horizontal: "ms".to_owned(),
            vertical: "Mbit/s".to_owned(),
            line: Marks(vec![mark("2", 10.0, 20.0), mark("28", 100.0, 40.0)]),
            marks: Marks(vec![mark("law", 1000.0, 30.0)]),
        }
        .render();
        assert_eq!((svg.matches("<circle").count(), svg.matches("<polyline").count()), (3, 1));
        // 10 ms is at the left end, 100 ms in the middle, 1000 ms at the right end.
        for place in ["cx=\"60.0\" cy=\"175.0\"", "cx=\"452.5\" cy=\"35.0\"", "cx=\"845.0\""] {
            assert!(svg.contains(place), "{place}: {svg}");
        }
    }

    #[test]
    fn axes_end_at_round_numbers() {
        let ends = [0.0, 0.7, 23.0, 100.0, 269.0].map(round_up);
        let expected: [f64; 5] = [1.0, 0.8, 30.0, 100.0, 300.0];
        assert!(ends.iter().zip(expected).all(|(end, expected)| (end - expected).abs() < 1e-9));
    }
}
