//! Differences of figures between files.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::counts::median;

/// A figure that is compared between files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Figure {
    /// Launches.
    Launches,
    /// Visits.
    Visits,
    /// Active lanes, summed over the visits.
    Lanes,
    /// Idle slots.
    Idle,
    /// Idle slots, here and elsewhere, that the row causes.
    Caused,
    /// Trips of lanes through a loop.
    Trips,
    /// Warp-cycles.
    WarpCycles,
    /// Run time of launches in nanoseconds, summed.
    Nanoseconds,
}

impl Figure {
    /// Returns the name of the figure.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Launches => "launches",
            Self::Visits => "visits",
            Self::Lanes => "active lanes",
            Self::Idle => "idle slots",
            Self::Caused => "caused idle slots",
            Self::Trips => "trips",
            Self::WarpCycles => "warp-cycles",
            Self::Nanoseconds => "time of launches",
        }
    }
}

/// Distribution of a figure over the files that have the kernel, line or location in their tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Spread {
    /// Minimum.
    pub least: u64,
    /// Lower median.
    pub median: u64,
    /// Maximum.
    pub most: u64,
    /// Value with the greatest distance from the median.
    pub outlier: u64,
    /// First file with this value.
    pub outlier_file: u32,
}

impl Spread {
    pub(super) fn new(numbers: &[(u32, u64)]) -> Option<Self> {
        let mut values: Vec<u64> = numbers.iter().map(|(_, number)| *number).collect();
        let (least, most) = (*values.iter().min()?, *values.iter().max()?);
        let median = median(&mut values);
        let distance = |number: u64| number.abs_diff(median);
        let outlier = numbers.iter().copied();
        let (outlier_file, outlier) = outlier
            .reduce(|outlier, next| if distance(next.1) > distance(outlier.1) { next } else { outlier })?;
        Some(Self { least, median, most, outlier, outlier_file })
    }

    /// Returns true if all files have the same value.
    pub const fn is_even(&self) -> bool {
        self.least == self.most
    }
}

/// Values of a row by figure: the files with a value other than 0, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers(BTreeMap<Figure, Vec<(u32, u64)>>);

impl Numbers {
    pub(super) fn add(&mut self, file: u32, figure: Figure, number: u64) {
        let of_figure = self.0.entry(figure).or_default();
        match of_figure.last_mut() {
            Some((last, sum)) if *last == file => *sum = sum.saturating_add(number),
            _ => of_figure.push((file, number)),
        }
    }

    pub(super) fn by_file(&self, figure: Figure, files: &[u32]) -> Vec<(u32, u64)> {
        let known = self.0.get(&figure).map_or(&[][..], Vec::as_slice);
        let number =
            |file: u32| known.binary_search_by_key(&file, |known| known.0).map_or(0, |at| known[at].1);
        files.iter().map(|&file| (file, number(file))).collect()
    }

    pub(super) fn spreads(&self, files: &[u32]) -> BTreeMap<Figure, Spread> {
        let of = |&figure: &Figure| Some((figure, Spread::new(&self.by_file(figure, files))?));
        self.0.keys().filter_map(of).collect()
    }
}
