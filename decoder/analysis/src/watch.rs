//! Intermediate counts of a running analysis.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::counts::Counts;
use crate::figures::Losses;

/// Intermediate counts of one analysis, which other threads can read and stop. Memory: 2 MiB.
#[derive(Debug)]
pub struct Watch {
    is_stopped: AtomicBool,
    losses: OnceLock<Losses>,
    /// Visits, lanes, idle slots and slots, by location id.
    counts: Box<[[AtomicU64; 4]]>,
}

impl Default for Watch {
    fn default() -> Self {
        let counts = (0..=u16::MAX).map(|_| Default::default()).collect();
        Self { is_stopped: AtomicBool::new(false), losses: OnceLock::new(), counts }
    }
}

impl Watch {
    /// Requests a stop of the analysis.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Returns true if a stop was requested.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Returns the missing data; `None` until it is known. The analysis reads accounts before any event.
    pub fn losses(&self) -> Option<&Losses> {
        self.losses.get()
    }

    /// Returns the current counts of a location. They never decrease, and end at the figures of the analysis.
    pub fn counts(&self, location: u16) -> Counts {
        let [visits, lanes, idle, slots] =
            self.counts[usize::from(location)].each_ref().map(|count| count.load(Ordering::Relaxed));
        Counts { visits, lanes, idle, slots }
    }

    /// Returns the current counts, summed over all locations.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        (0..=u16::MAX).for_each(|location| total.add(&self.counts(location)));
        total
    }

    pub(crate) fn set_losses(&self, losses: &Losses) {
        // A second analysis with the same watch does not replace the losses.
        let _ = self.losses.set(losses.clone());
    }

    pub(crate) fn add(&self, location: u16, more: &Counts) {
        let more = [more.visits, more.lanes, more.idle, more.slots];
        for (count, more) in self.counts[usize::from(location)].iter().zip(more) {
            if more > 0 {
                count.update(Ordering::Relaxed, Ordering::Relaxed, |count| count.saturating_add(more));
            }
        }
    }
}
