//! Contents of a figure, independent of drawing.

use plotters::style::RGBColor;

/// Grouped bars over a vertical axis.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) origin: String,
    pub(super) axis: &'static str,
    pub(super) log: bool,
    pub(super) groups: Vec<String>,
    pub(super) series: Vec<Series>,
    pub(super) band: Option<Band>,
    pub(super) notes: Vec<String>,
    pub(super) warning: Option<&'static str>,
}

/// One bar in each group.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) colour: RGBColor,
    pub(super) fill: Fill,
    /// Value for each group, if it exists.
    pub(super) values: Vec<Option<Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fill {
    Full,
    Light,
    /// Outline only, for numbers of the thesis.
    Outline,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Value {
    pub(super) number: f64,
    /// Whether the value has a star, which a note explains.
    pub(super) starred: bool,
}

/// A range on the vertical axis; a line if both ends are equal.
#[derive(Clone, Debug)]
pub(super) struct Band {
    pub(super) name: String,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Chart {
    fn range(&self) -> (f64, f64) {
        let values =
            self.series.iter().flat_map(|series| series.values.iter().flatten().map(|value| value.number));
        let ends = self.band.iter().flat_map(|band| [band.low, band.high]);
        values
            .chain(ends)
            .filter(|number| number.is_finite() && *number > 0.0)
            .fold((f64::INFINITY, 0.0), |(low, high), number| (low.min(number), high.max(number)))
    }

    pub(super) fn scale(&self) -> Scale {
        let (low, high) = self.range();
        if high == 0.0 {
            return Scale { log: false, low: 0.0, high: 1.0 };
        }
        if !self.log {
            return Scale { log: false, low: 0.0, high: high * 1.18 };
        }
        // Bars begin at 1 (no gain or loss), or below the smallest number. Labels need space above.
        let (low, high) = (low.min(1.0).log10(), high.max(2.0).log10());
        let room = (high - low) * 0.16;
        let below = if low < 0.0 { room * 0.5 } else { 0.0 };
        Scale { log: true, low: low - below, high: high + room }
    }
}

/// Scale of the vertical axis. On a logarithmic scale, `low` and `high` are logarithms to base 10.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    log: bool,
    low: f64,
    high: f64,
}

impl Scale {
    /// Returns the position of `number`, from 0 at the bottom to 1 at the top.
    pub(super) fn place(&self, number: f64) -> f64 {
        let number = if self.log { number.log10() } else { number };
        ((number - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Returns the numbers to label on the axis.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if !self.log {
            let step = step(self.high - self.low);
            return (0..).map(|n| f64::from(n) * step).take_while(|tick| *tick <= self.high).collect();
        }
        let decades = self.high - self.low;
        let digits: &[f64] = match decades {
            d if d < 1.0 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            d if d < 3.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let exponents = self.low.floor() as i32..=self.high.ceil() as i32;
        exponents
            .flat_map(|exponent| digits.iter().map(move |digit| digit * 10_f64.powi(exponent)))
            .filter(|tick| (self.low..=self.high).contains(&tick.log10()))
            .collect()
    }
}

/// Returns a round step (1, 2 or 5 times a power of ten) that gives four to nine ticks on an axis from 0.
fn step(range: f64) -> f64 {
    let power = 10_f64.powf((range / 8.0).log10().floor());
    let rough = range / 8.0 / power;
    power * [1.0, 2.0, 5.0].into_iter().find(|step| *step >= rough).unwrap_or(10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(log: bool, numbers: &[f64]) -> Chart {
        let values = numbers.iter().map(|&number| Some(Value { number, starred: false })).collect();
        let series = Series { name: String::new(), colour: RGBColor(0, 0, 0), fill: Fill::Full, values };
        Chart {
            title: String::new(),
            origin: String::new(),
            axis: "",
            log,
            groups: vec![String::new(); numbers.len()],
            series: vec![series],
            band: None,
            notes: Vec::new(),
            warning: None,
        }
    }

    #[test]
    fn every_value_is_on_the_scale_with_room_above() {
        for numbers in [&[1.02, 5.3][..], &[0.4, 12.0], &[1.4, 460_000.0], &[3.0]] {
            for log in [false, true] {
                let scale = chart(log, numbers).scale();
                for &number in numbers {
                    assert!(scale.place(number) > 0.0 && scale.place(number) < 0.9, "{log} {numbers:?}");
                }
                let ticks = scale.ticks().len();
                assert!((3..=14).contains(&ticks), "{log} {numbers:?}: {ticks} ticks");
            }
        }
    }

    #[test]
    fn an_empty_chart_has_a_scale() {
        let scale = chart(true, &[]).scale();
        assert!(!scale.ticks().is_empty());
        assert_eq!(scale.place(f64::NAN.max(2.0)), 1.0);
    }
}
