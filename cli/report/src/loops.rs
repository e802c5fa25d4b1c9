//! Loops: trips of lanes and visits of warps.

use std::cmp::Reverse;

use warptrace_analysis::words::{count, ratio};
use warptrace_analysis::{Analysis, Distribution, LocationFigures, OrderItems};

use crate::guide::{Guide, LocationLink};
use crate::svg::{Histogram, power_histogram};

#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) id: u16,
    pub(crate) place: LocationLink,
    pub(crate) kernels: String,
    pub(crate) idle: String,
    /// Trips of lanes, and visits of warps.
    pub(crate) spreads: [Spread; 2],
}

#[derive(Debug)]
pub(crate) struct Spread {
    pub(crate) of: &'static str,
    pub(crate) min: String,
    pub(crate) median: String,
    pub(crate) p95: String,
    pub(crate) max: String,
    pub(crate) mean: String,
    pub(crate) imbalance: String,
    pub(crate) histogram: Histogram,
}

impl Spread {
    fn new(of: &'static str, numbers: &Distribution, what: &str) -> Self {
        Self {
            of,
            min: count(numbers.min()),
            median: count(numbers.percentile(50)),
            p95: count(numbers.percentile(95)),
            max: count(numbers.max()),
            mean: ratio(numbers.mean()),
            imbalance: ratio(numbers.imbalance()),
            histogram: power_histogram(&numbers.powers_of_two(), what),
        }
    }
}

/// Returns the loop heads in the order of `warptrace loops`: most idle slots first.
pub(crate) fn heads(analysis: &Analysis) -> Vec<&LocationFigures> {
    let mut heads: Vec<&LocationFigures> = analysis.loops().collect();
    heads.order_by_key(|head| Reverse(head.counts.idle));
    heads
}

pub(crate) fn loops(guide: &Guide<'_>) -> Vec<Loop> {
    let of = |head: &LocationFigures| {
        let id = head.point.location;
        Loop {
            id,
            place: guide.place(Some(id), ""),
            kernels: guide.kernels(&[id]),
            idle: count(head.counts.idle),
            spreads: [
                Spread::new("trips of lanes", &head.trips, "how many times a lane made this many trips"),
                Spread::new("visits of warps", &head.warp_visits, "how many warps came this many times"),
            ],
        }
    };
    heads(guide.analysis).into_iter().take(guide.limits.loops).map(of).collect()
}
