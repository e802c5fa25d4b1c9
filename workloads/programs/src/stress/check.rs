//! Did every walk go where it should?

use std::fmt;

use super::{StressOptions, StressResult, reference};
use crate::words::count;

/// What [`check()`] found of walks that went right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Walks.
    pub walks: u64,
    /// Lanes that pass trace points, over all of them, as [`StressResult::lane_events`] counts them.
    pub lane_events: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            write!(f, "{} walks as on the CPU", count(self.walks))
        } else {
            write!(f, "every walk as on the CPU ({} lanes at trace points)", count(self.lane_events))
        }
    }
}

/// What of a result is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// Another number of walks or counters.
    #[error("{found} values, not {expected}: {what}")]
    Length {
        /// Which values.
        what: &'static str,
        /// How many were given.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// Another number than the reference's.
    #[error("{what} {at} is {found:#x}, not {expected:#x}")]
    Value {
        /// Which values.
        what: &'static str,
        /// The first wrong one.
        at: usize,
        /// It.
        found: u32,
        /// What it should be.
        expected: u32,
    },
}

/// Checks that the walks left behind what [`reference()`] does.
///
/// # Errors
/// What differs first.
///
/// # Panics
/// If an option is out of the range that [`run`](super::run()) allows.
pub fn check(options: &StressOptions, result: &StressResult) -> Result<Finding, CheckError> {
    check_against(options, &reference(options), result)
}

/// As [`check()`], with the reference that is known already.
///
/// # Errors
/// What differs first.
pub fn check_against(
    options: &StressOptions,
    expected: &StressResult,
    result: &StressResult,
) -> Result<Finding, CheckError> {
    for (what, found, expected) in [
        ("checksum of walk", &result.sums, &expected.sums),
        ("trace points of walk", &result.passed, &expected.passed),
        ("global counter", &result.bins, &expected.bins),
        ("shared counter", &result.counts, &expected.counts),
    ] {
        if found.len() != expected.len() {
            return Err(CheckError::Length { what, found: found.len(), expected: expected.len() });
        }
        let wrong = found.iter().zip(expected).position(|(found, expected)| found != expected);
        if let Some(at) = wrong {
            return Err(CheckError::Value { what, at, found: found[at], expected: expected[at] });
        }
    }
    Ok(Finding { walks: result.sums.len() as u64, lane_events: result.lane_events(options) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_are_judged() {
        let options = StressOptions { block: 32, ..StressOptions::new(40, 2) };
        let expected = reference(&options);
        let finding = check(&options, &expected).unwrap();
        assert_eq!(format!("{finding:#}"), "40 walks as on the CPU");
        let lanes = count(expected.lane_events(&options));
        assert_eq!(finding.to_string(), format!("every walk as on the CPU ({lanes} lanes at trace points)"));

        let mut wrong = expected.clone();
        (wrong.passed[17], wrong.counts[3]) = (0xff, 0);
        let error = check_against(&options, &expected, &wrong).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("trace points of walk 17 is 0xff, not {:#x}", expected.passed[17])
        );
        wrong.sums.pop();
        let error = check_against(&options, &expected, &wrong).unwrap_err();
        assert_eq!(error.to_string(), "39 values, not 40: checksum of walk");
    }
}
