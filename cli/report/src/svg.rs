//! Small pictures: histograms and the work curve.

use std::fmt::Write;

use askama::Template;
use warptrace_analysis::words::count;
use warptrace_analysis::{OrderItems, share};

/// Height of a histogram, in coordinates of its viewBox.
const HEIGHT: f64 = 20.0;

/// A histogram with a text alternative. The template adds labels of bins.
#[derive(Debug, Template)]
#[template(
    ext = "html",
    source = r#"<svg class="bins" width="{{ width }}" height="32" viewBox="0 0 {{ width }} 32" role="img" aria-label="{{ label }}"><title>{{ label }}</title><path d="{{ path }}"/>{% for bin in bins %}<text x="{{ bin.0 }}" y="30">{{ bin.1 }}</text>{% endfor %}</svg>"#
)]
pub(crate) struct Histogram {
    pub(crate) width: usize,
    pub(crate) path: String,
    pub(crate) label: String,
    /// Middle of the bar and text of each labelled bin.
    pub(crate) bins: Vec<(usize, String)>,
}

const WIDE: usize = 26;

/// Draws bars at distances of `step`, with a gap of 1. A bar that is not 0 is at least 1 high.
fn bars(numbers: &[u64], step: usize) -> String {
    let most = numbers.iter().copied().max().unwrap_or(0);
    let mut path = String::new();
    for (at, &number) in numbers.iter().enumerate().filter(|(_, number)| **number > 0) {
        let height = (HEIGHT * share(number, most)).max(1.0);
        // Writing to a string cannot fail.
        let _ = write!(path, "M{} 20v-{height:.1}h{}V20z", at * step, step - 1);
    }
    path
}

/// Draws visits by number of active lanes: 33 bars for 0 to 32 lanes.
pub(crate) fn lane_histogram(active: &[u64]) -> Histogram {
    let mut order: Vec<usize> = (0..active.len()).filter(|&lanes| active[lanes] > 0).collect();
    order.order_by_key(|&lanes| std::cmp::Reverse(active[lanes]));
    let said: Vec<String> =
        order.iter().take(6).map(|&lanes| format!("{} with {lanes}", count(active[lanes]))).collect();
    let more = if order.len() > 6 { ", and other numbers" } else { "" };
    let label = format!("visits by number of active lanes: {}{more}", said.join(", "));
    let bins = [1, 16, 32].map(|lanes| (3 * lanes + 1, lanes.to_string())).to_vec();
    Histogram { width: active.len() * 3, path: bars(active, 3), label, bins }
}

/// Draws the numbers of values that are 1, 2 to 3, 4 to 7 and so on. `powers[0]`, for 0, has no bar.
pub(crate) fn power_histogram(powers: &[u64], what: &str) -> Histogram {
    let shown = powers.get(1..).unwrap_or(&[]);
    let said = shown.iter().enumerate().filter(|(_, number)| **number > 0).map(|(at, &number)| match at {
        0 => format!("1: {}", count(number)),
        at => format!("{} to {}: {}", count(1 << at), count((1_u64 << at) - 1 + (1 << at)), count(number)),
    });
    let label = format!("{what}: {}", said.collect::<Vec<_>>().join(", "));
    let bins = (0..shown.len()).map(|at| (at * WIDE + WIDE / 2, short(1 << at))).collect();
    Histogram { width: shown.len().max(1) * WIDE, path: bars(shown, WIDE), label, bins }
}

/// Formats a power of two in a few characters: `512`, `1Ki`.
fn short(number: u64) -> String {
    const UNITS: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let unit = number.max(1).ilog2() as usize / 10;
    format!("{}{}", number >> (10 * unit), UNITS[unit])
}

/// Draws a step for each number, filled from the bottom. The full height is `most`.
pub(crate) fn steps(numbers: impl ExactSizeIterator<Item = f64>, most: f64, size: [f64; 2]) -> String {
    let [width, height] = size;
    let step = width / numbers.len().max(1) as f64;
    let mut path = format!("M0 {height}");
    for (at, number) in numbers.enumerate() {
        let top = height - height * (number / most.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        let _ = write!(path, "V{top:.1}H{:.1}", step * (at + 1) as f64);
    }
    let _ = write!(path, "V{height}z");
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_numbers() {
        assert_eq!(bars(&[0, 10, 5, 0], 3), "M3 20v-20.0h2V20zM6 20v-10.0h2V20z");
        assert!(bars(&[1, 1_000_000], 2).starts_with("M0 20v-1.0h"));
    }

    #[test]
    fn labels_say_what_bars_show() {
        let mut active = vec![0; 33];
        (active[1], active[32]) = (1_000, 5);
        assert_eq!(
            lane_histogram(&active).label,
            "visits by number of active lanes: 1,000 with 1, 5 with 32"
        );
        let trips = power_histogram(&[0, 3, 0, 7], "trips");
        assert_eq!(trips.label, "trips: 1: 3, 4 to 7: 7");
        assert_eq!(trips.bins.iter().map(|bin| &*bin.1).collect::<Vec<_>>(), ["1", "2", "4"]);
        assert_eq!([1, 512, 1_024, 1 << 63].map(short), ["1", "512", "1Ki", "8Ei"]);
        let mut widest = vec![0; 65];
        widest[64] = 1;
        assert!(power_histogram(&widest, "trips").label.contains("to 18,446,744,073,709,551,615: 1"));
    }
}
