//! Check of the walks.

use super::{StressOptions, StressResult, reference};
use crate::check::Checked;
use crate::words::count;

/// Compares the results of the walks with [`reference()`]'s. Returns the first difference as the error.
/// Panics if an option is out of the range that [`run`](super::run()) allows.
pub fn check(options: &StressOptions, result: &StressResult) -> Checked {
    check_against(options, &reference(options), result)
}

/// Like [`check()`], but takes the result of the reference.
pub fn check_against(options: &StressOptions, expected: &StressResult, result: &StressResult) -> Checked {
    for (what, found, expected) in [
        ("checksum of walk", &result.sums, &expected.sums),
        ("trace points of walk", &result.passed, &expected.passed),
        ("global counter", &result.bins, &expected.bins),
        ("shared counter", &result.counts, &expected.counts),
    ] {
        if found.len() != expected.len() {
            return Err(format!("{} values, not {}: {what}", found.len(), expected.len()));
        }
        let wrong = found.iter().zip(expected).position(|(found, expected)| found != expected);
        if let Some(at) = wrong {
            return Err(format!("{what} {at} is {:#x}, not {:#x}", found[at], expected[at]));
        }
    }
    let lanes = count(result.lane_events(options));
    Ok(format!("every walk as on the CPU ({lanes} lanes at trace points)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_are_judged() {
        let options = StressOptions { block: 32, ..StressOptions::new(40, 2) };
        let expected = reference(&options);
        let finding = check(&options, &expected).unwrap();
        let lanes = count(expected.lane_events(&options));
        assert_eq!(finding, format!("every walk as on the CPU ({lanes} lanes at trace points)"));

        let mut wrong = expected.clone();
        (wrong.passed[17], wrong.counts[3]) = (0xff, 0);
        let error = check_against(&options, &expected, &wrong).unwrap_err();
        assert_eq!(error, format!("trace points of walk 17 is 0xff, not {:#x}", expected.passed[17]));
        wrong.sums.pop();
        let error = check_against(&options, &expected, &wrong).unwrap_err();
        assert_eq!(error, "39 values, not 40: checksum of walk");
    }
}
