//! Draws a chart. Positions are in pixels. Labels wrap, so that nothing is cut off or overlaps.

use anyhow::anyhow;
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{FontStyle, RGBColor, register_font as register};

use super::chart::{Chart, Fill, Scale, Value};
use super::paint::{Area, FONT, Paint, Text};
use crate::table::{count, digits};

const LEFT: i32 = 92;
const RIGHT: i32 = 24;
/// Space for title, origin and legend.
const TOP: i32 = 120;
const PLOT: i32 = 420;
/// Width of a bar and the gap after it.
const BAR: i32 = 15;
const GROUP_GAP: i32 = 22;
const SMALLEST_GROUP: i32 = 112;
const LABEL_LINE: i32 = 17;
const LABEL_LINES: usize = 4;
const BOTTOM: i32 = LABEL_LINES as i32 * LABEL_LINE + 16;
const NOTE_LINE: i32 = 18;
const SMALLEST_WIDTH: i32 = 1000;

const INK: RGBColor = RGBColor(30, 30, 30);
const FAINT: RGBColor = RGBColor(222, 222, 222);
const SOFT: RGBColor = RGBColor(100, 100, 100);
const WARNING: RGBColor = RGBColor(190, 20, 20);
const BAND: RGBColor = RGBColor(250, 236, 190);
const BAND_LINE: RGBColor = RGBColor(190, 150, 20);

pub(super) fn register_font() -> anyhow::Result<()> {
    let fonts = [(FontStyle::Normal, dejavu::sans::regular()), (FontStyle::Bold, dejavu::sans::bold())];
    for (style, bytes) in fonts {
        register(FONT, style, bytes).map_err(|_| anyhow!("the font cannot be read"))?;
    }
    Ok(())
}

fn group_width(chart: &Chart) -> i32 {
    (chart.series.len() as i32 * BAR + GROUP_GAP).max(SMALLEST_GROUP)
}

pub(super) fn size(chart: &Chart) -> (u32, u32) {
    let width = (LEFT + RIGHT + chart.groups.len() as i32 * group_width(chart)).max(SMALLEST_WIDTH);
    (width as u32, (TOP + PLOT + BOTTOM + chart.notes.len() as i32 * NOTE_LINE) as u32)
}

/// Draws `chart` into an area of its [`size`].
pub(super) fn draw<'a>(area: Area<'a>, chart: &'a Chart) -> anyhow::Result<()> {
    let (width, height) = size(chart);
    let (width, height) = (width as i32, height as i32);
    let plotter = Plotter {
        paint: Paint(area),
        chart,
        scale: chart.scale(),
        right: width - RIGHT,
        group: (width - LEFT - RIGHT) / chart.groups.len().max(1) as i32,
    };
    plotter.paint.rectangle((0, 0), (width, height), RGBColor(255, 255, 255))?;
    plotter.heading()?;
    plotter.axis()?;
    for group in 0..chart.groups.len() {
        plotter.bars(group)?;
        plotter.label(group)?;
    }
    plotter.paint.line((LEFT, TOP + PLOT), (plotter.right, TOP + PLOT), INK, 1)?;
    plotter.notes()?;
    plotter.paint.present()
}

struct Plotter<'a> {
    paint: Paint<'a>,
    chart: &'a Chart,
    scale: Scale,
    right: i32,
    group: i32,
}

impl Plotter<'_> {
    fn heading(&self) -> anyhow::Result<()> {
        let Chart { title, origin, warning, .. } = self.chart;
        self.paint.text(title, (LEFT, 12), &Text::new(21, INK).bold())?;
        self.paint.text(origin, (LEFT, 42), &Text::new(13, SOFT))?;
        if let Some(warning) = warning {
            // On a separate line if it would overlap the title.
            let font = Text::new(17, WARNING).bold();
            let (title, own) =
                (self.paint.width(title, &Text::new(21, INK).bold())?, self.paint.width(warning, &font)?);
            let fits = LEFT + title + 30 + own < self.right;
            self.paint.text(
                warning,
                (self.right, if fits { 14 } else { 40 }),
                &font.at(HPos::Right, VPos::Top),
            )?;
        }
        self.legend()
    }

    fn legend(&self) -> anyhow::Result<()> {
        let font = Text::new(14, INK);
        let (mut x, mut y) = (LEFT, 68);
        let mut next = |name: &str| -> anyhow::Result<(i32, i32)> {
            let width = 22 + self.paint.width(name, &font)? + 24;
            if x > LEFT && x + width > self.right {
                (x, y) = (LEFT, y + 22);
            }
            let place = (x, y);
            x += width;
            Ok(place)
        };
        for series in &self.chart.series {
            let (x, y) = next(&series.name)?;
            self.bar((x, y), (x + 14, y + 14), series.colour, series.fill)?;
            self.paint.text(&series.name, (x + 21, y + 7), &font.at(HPos::Left, VPos::Center))?;
        }
        if let Some(band) = &self.chart.band {
            let (x, y) = next(&band.name)?;
            if band.low < band.high {
                self.paint.rectangle((x, y), (x + 14, y + 14), BAND)?;
                self.paint.outline((x, y), (x + 14, y + 14), BAND_LINE, 1)?;
            } else {
                self.paint.dashes((x, y + 7), x + 15, BAND_LINE)?;
            }
            self.paint.text(&band.name, (x + 21, y + 7), &font.at(HPos::Left, VPos::Center))?;
        }
        Ok(())
    }

    fn y(&self, number: f64) -> i32 {
        TOP + PLOT - (self.scale.place(number) * f64::from(PLOT)).round() as i32
    }

    fn axis(&self) -> anyhow::Result<()> {
        let band = self.chart.band.as_ref();
        if let Some(band) = band.filter(|band| band.low < band.high) {
            self.paint.rectangle((LEFT, self.y(band.high)), (self.right, self.y(band.low)), BAND)?;
        }
        for tick in self.scale.ticks() {
            let y = self.y(tick);
            self.paint.line((LEFT, y), (self.right, y), FAINT, 1)?;
            self.paint.text(
                &short(tick),
                (LEFT - 8, y),
                &Text::new(13, INK).at(HPos::Right, VPos::Center),
            )?;
        }
        if self.chart.log && self.scale.place(1.0) > 0.0 {
            self.paint.line((LEFT, self.y(1.0)), (self.right, self.y(1.0)), SOFT, 1)?;
        }
        if let Some(band) = band.filter(|band| band.low == band.high) {
            self.paint.dashes((LEFT, self.y(band.low)), self.right, BAND_LINE)?;
        }
        self.paint.line((LEFT, TOP), (LEFT, TOP + PLOT), INK, 1)?;
        let axis = Text::new(14, INK).upwards().at(HPos::Center, VPos::Center);
        self.paint.text(self.chart.axis, (20, TOP + PLOT / 2), &axis)
    }

    fn bars(&self, group: usize) -> anyhow::Result<()> {
        // Series without a value in this group take no space.
        let bars: Vec<_> = (self.chart.series.iter())
            .filter_map(|series| Some((series, series.values.get(group).copied().flatten()?)))
            .filter(|(_, value)| value.number.is_finite() && value.number > 0.0)
            .collect();
        let middle = LEFT + group as i32 * self.group + self.group / 2;
        let first = middle - bars.len() as i32 * BAR / 2;
        // On a logarithmic axis, bars begin at 1 and extend up or down.
        let base = if self.chart.log { self.y(1.0) } else { TOP + PLOT };
        for (place, (series, value)) in (0..).zip(bars) {
            let (x, y) = (first + place * BAR, self.y(value.number));
            let (above, below) = (y.min(base), y.max(base).max(y.min(base) + 2));
            self.bar((x, above), (x + BAR - 3, below), series.colour, series.fill)?;
            let font = Text::new(12, INK).upwards().at(HPos::Left, VPos::Center);
            self.paint.text(&label(value), (x + BAR / 2 - 1, above - 4), &font)?;
        }
        Ok(())
    }

    fn bar(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor, fill: Fill) -> anyhow::Result<()> {
        match fill {
            Fill::Full => self.paint.rectangle(from, to, colour),
            Fill::Light => {
                self.paint.rectangle(from, to, lighter(colour))?;
                self.paint.outline(from, to, colour, 1)
            }
            Fill::Outline => {
                self.paint.rectangle(from, to, RGBColor(255, 255, 255))?;
                self.paint.outline(from, to, colour, 2)
            }
        }
    }

    fn label(&self, group: usize) -> anyhow::Result<()> {
        let font = Text::new(13, INK).at(HPos::Center, VPos::Top);
        let middle = LEFT + group as i32 * self.group + self.group / 2;
        let lines = self.wrap(&self.chart.groups[group], &font)?;
        for (number, line) in (0..).zip(&lines) {
            let font = if number == 0 { font.bold() } else { font };
            self.paint.text(line, (middle, TOP + PLOT + 9 + number * LABEL_LINE), &font)?;
        }
        Ok(())
    }

    /// Returns the lines of a label: the program (its first word), then each comma-separated part, wrapped.
    fn wrap(&self, label: &str, font: &Text) -> anyhow::Result<Vec<String>> {
        let (program, input) = label.split_once(' ').unwrap_or((label, ""));
        let mut lines = vec![program.to_owned()];
        for part in input.split_inclusive(", ") {
            let mut line = String::new();
            for word in part.split_whitespace() {
                let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
                if self.paint.width(&longer, font)? <= self.group - 6 || line.is_empty() {
                    line = longer;
                } else {
                    lines.push(std::mem::replace(&mut line, word.to_owned()));
                }
            }
            lines.push(line);
        }
        lines.truncate(LABEL_LINES);
        Ok(lines)
    }

    fn notes(&self) -> anyhow::Result<()> {
        for (number, note) in (0..).zip(&self.chart.notes) {
            self.paint.text(note, (LEFT, TOP + PLOT + BOTTOM + number * NOTE_LINE), &Text::new(13, SOFT))?;
        }
        Ok(())
    }
}

fn lighter(RGBColor(red, green, blue): RGBColor) -> RGBColor {
    let half = |part: u8| part / 2 + 127;
    RGBColor(half(red), half(green), half(blue))
}

/// Formats a tick without trailing zeros.
fn short(tick: f64) -> String {
    if tick >= 1000.0 {
        return count(tick.round() as u64);
    }
    let text = format!("{tick:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn label(value: Value) -> String {
    let number = match value.number {
        n if n >= 999_500.0 => format!("{}M", digits(n / 1e6)),
        n if n >= 9_999.5 => format!("{}k", digits(n / 1e3)),
        n => digits(n),
    };
    format!("{number}{}", if value.starred { "*" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short() {
        let text = |number, starred| label(Value { number, starred });
        assert_eq!(text(6.126, false), "6.13");
        assert_eq!(text(9_999.0, true), "9,999*");
        assert_eq!(text(369_769.0, false), "370k");
        assert_eq!(text(1_383_688.0, true), "1.38M*");
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(
            ["0", "0.5", "1.5", "200", "10,000"],
            [0.0, 0.5, 1.5, 200.0, 10_000.0].map(short).each_ref().map(String::as_str)
        );
    }
}
