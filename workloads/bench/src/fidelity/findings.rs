//! Evaluates counts: whether a trace matches the traced kernel, and how far that is from the untraced one.

use super::counts::{Counts, Point};
use super::modes::Mode;
use super::slower::Slower;
use crate::table::count;

/// Maximum number of points that a problem names.
const NAMED: usize = 3;

#[derive(Clone, Debug)]
pub(super) struct Recording {
    pub(super) mode: Mode,
    pub(super) launches: usize,
    /// Counts from the marks of the traced kernel.
    pub(super) traced: Counts,
    /// Counts from the trace, by track.
    pub(super) decoded: Vec<Counts>,
    pub(super) lost: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Findings {
    pub(super) program: &'static str,
    pub(super) input: String,
    /// Whether the behaviour of lanes depends on the order of threads.
    pub(super) asynchronous: bool,
    /// Counts from the marks of the untraced kernel, by run; at least one.
    pub(super) untraced: Vec<Counts>,
    pub(super) slower: Vec<(Slower, Counts)>,
    pub(super) recordings: Vec<Recording>,
}

impl Findings {
    /// Returns the untraced run for comparison with the recordings: the median by number of events.
    pub(super) fn reference(&self) -> &Counts {
        let mut runs: Vec<&Counts> = self.untraced.iter().collect();
        runs.sort_by_key(|counts| counts.total().events);
        runs[(runs.len() - 1) / 2]
    }

    /// Returns the largest distance between two untraced runs; `None` if there is only one.
    pub(super) fn spread(&self) -> Option<f64> {
        let runs = &self.untraced;
        let pairs = runs.iter().enumerate().flat_map(|(index, one)| {
            runs[index + 1..].iter().map(move |other| one.distance(other).max(other.distance(one)))
        });
        pairs.max_by(f64::total_cmp)
    }

    /// Returns the [distance](Counts::distance) of a trace from the untraced run.
    pub(super) fn distance(&self, decoded: &Counts) -> f64 {
        self.reference().distance(decoded)
    }

    /// Returns whether a trace is as close to the reference as untraced runs are to each other; `None` if
    /// there is only one.
    pub(super) fn is_within_spread(&self, decoded: &Counts) -> Option<bool> {
        self.spread().map(|spread| self.distance(decoded) <= spread)
    }

    pub(super) fn problems(&self, recording: &Recording) -> Vec<String> {
        let mut problems = Vec::new();
        if recording.lost > 0 {
            problems.push(format!("{} events were lost", count(recording.lost)));
        }
        for (track, decoded) in recording.decoded.iter().enumerate() {
            let of_track = if track == 0 { "the trace" } else { "the raw twin" };
            // With counted loops, the trace has the events of lanes in lock step.
            if !(recording.mode.is_counted() && track == 0) {
                let differences = decoded.event_differences(&recording.traced);
                problems
                    .extend(unequal(&format!("{of_track} has other events than its kernel"), &differences));
            }
            let differences = decoded.lane_differences(&recording.traced);
            problems.extend(unequal(&format!("{of_track} has other lanes than its kernel"), &differences));
        }
        if !self.asynchronous {
            let differences = recording.traced.lane_differences(self.reference());
            problems.extend(unequal("the traced kernel has other lanes than the untraced", &differences));
        }
        problems
    }

    /// Returns true if a track matches the counts of its kernel.
    pub(super) fn is_its_kernel(recording: &Recording, decoded: &Counts) -> bool {
        decoded.event_differences(&recording.traced).is_empty()
            && decoded.lane_differences(&recording.traced).is_empty()
    }

    /// Formats [`is_its_kernel`](Self::is_its_kernel), with the difference if there is one.
    pub(super) fn as_its_kernel(recording: &Recording, decoded: &Counts) -> String {
        if Self::is_its_kernel(recording, decoded) {
            return "yes".to_owned();
        }
        let share = recording.traced.distance(decoded);
        if recording.mode.is_counted() && decoded.lane_differences(&recording.traced).is_empty() {
            return format!("lanes; events of loops differ by {}", percent(share));
        }
        format!("NO, {}", percent(share))
    }

    pub(super) fn summary(&self) -> String {
        let reference = self.reference();
        let expected = reference.events_beside(&Counts::default());
        let spread = self.spread().map_or_else(String::new, |spread| {
            format!(" ({} untraced runs, at most {} from each other)", self.untraced.len(), percent(spread))
        });
        let mut text =
            format!("{} {}: {} events untraced{spread}. ", self.program, self.input, count(expected));
        if reference.bounds().len() > 0 {
            let points: Vec<String> =
                reference.bounds().map(|Point { kernel, location }| format!("{kernel}:{location}")).collect();
            text += &format!("Without {}, whose marks are conditional. ", points.join(", "));
        }
        let tracks = || {
            self.recordings.iter().filter_map(|recording| Some((&recording.mode, recording.decoded.first()?)))
        };
        if self.asynchronous {
            let outside: Vec<&str> = tracks()
                .filter(|(_, decoded)| self.is_within_spread(decoded) == Some(false))
                .map(|(mode, _)| mode.name.as_str())
                .collect();
            text += "It is asynchronous, each run differs; ";
            text += &match (self.spread(), outside.is_empty()) {
                (None, _) => "one untraced run does not tell by how much.".to_owned(),
                (_, true) => "every trace is within the spread of the untraced runs.".to_owned(),
                (_, false) => format!("not within the spread of the untraced runs: {}.", outside.join("; ")),
            };
            return text;
        }
        let others: Vec<String> = tracks()
            .map(|(mode, decoded)| (mode, decoded.events_beside(reference)))
            .filter(|(_, events)| *events != expected)
            .map(|(mode, events)| format!("{} {}", mode.name, count(events)))
            .collect();
        text += &if tracks().next().is_none() {
            "Nothing was recorded.".to_owned()
        } else if others.is_empty() {
            "Every trace has as many.".to_owned()
        } else {
            format!("Traces with another number: {}.", others.join("; "))
        };
        text
    }
}

fn unequal(what: &str, differences: &[(Point, u64, u64)]) -> Option<String> {
    let named: Vec<String> = differences
        .iter()
        .take(NAMED)
        .map(|(Point { kernel, location }, found, expected)| {
            format!("{} for {} at {kernel}:{location}", count(*found), count(*expected))
        })
        .collect();
    (!differences.is_empty())
        .then(|| format!("{what} at {} trace points ({})", differences.len(), named.join(", ")))
}

/// Formats a share as a percentage, with enough digits for small ones.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0%".to_owned(),
        percent if percent < 0.001 => "under 0.001%".to_owned(),
        percent if percent < 0.1 => format!("{percent:.3}%"),
        percent => format!("{percent:.2}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::counts::tests::counts;
    use super::super::modes;
    use super::*;
    use crate::programs;

    fn mode(name: &str) -> Mode {
        modes::named(&programs::fidelity(&[]).unwrap()[0], name).unwrap()
    }

    fn recording(name: &str, traced: &Counts, decoded: &[&Counts]) -> Recording {
        let decoded = decoded.iter().map(|counts| (*counts).clone()).collect();
        Recording { mode: mode(name), launches: 1, traced: traced.clone(), decoded, lost: 0 }
    }

    fn findings(asynchronous: bool, untraced: &[&Counts], recordings: Vec<Recording>) -> Findings {
        let untraced = untraced.iter().map(|counts| (*counts).clone()).collect();
        Findings {
            program: "walk",
            input: "small".to_owned(),
            asynchronous,
            untraced,
            slower: Vec::new(),
            recordings,
        }
    }

    #[test]
    fn an_exact_recording_has_no_problem() {
        let exact = counts(&[(1, 10, 320), (2, 90, 900)]);
        let found =
            findings(false, &[&exact], vec![recording("predict beside raw", &exact, &[&exact, &exact])]);
        assert_eq!(found.problems(&found.recordings[0]), Vec::<String>::new());
        assert_eq!(Findings::as_its_kernel(&found.recordings[0], &exact), "yes");
        assert_eq!(found.summary(), "walk small: 100 events untraced. Every trace has as many.");
    }

    #[test]
    fn a_trace_that_is_not_its_kernels_is_a_problem_on_each_track() {
        let (right, wrong) = (counts(&[(1, 10, 320), (2, 90, 900)]), counts(&[(1, 10, 320), (2, 91, 901)]));
        let found =
            findings(false, &[&right], vec![recording("predict beside raw", &right, &[&right, &wrong])]);
        assert_eq!(
            found.problems(&found.recordings[0]),
            [
                "the raw twin has other events than its kernel at 1 trace points (91 for 90 at walk:2)",
                "the raw twin has other lanes than its kernel at 1 trace points (901 for 900 at walk:2)"
            ]
        );
        assert_eq!(Findings::as_its_kernel(&found.recordings[0], &wrong), "NO, 1.00%");
        let mut lost = recording("raw", &right, &[&right]);
        lost.lost = 5;
        assert_eq!(found.problems(&lost), ["5 events were lost"]);
    }

    #[test]
    fn counted_loops_may_have_other_events_but_no_other_lanes() {
        let (traced, decoded) = (counts(&[(1, 100, 320)]), counts(&[(1, 90, 320)]));
        let found = findings(false, &[&traced], Vec::new());
        let counted = recording("predict, counted loops", &traced, &[&decoded]);
        assert_eq!(found.problems(&counted), Vec::<String>::new());
        assert_eq!(Findings::as_its_kernel(&counted, &decoded), "lanes; events of loops differ by 10.00%");
        assert_eq!(found.problems(&recording("raw", &traced, &[&decoded])).len(), 1);
        let fewer = counts(&[(1, 100, 319)]);
        assert_eq!(found.problems(&recording("predict, counted loops", &traced, &[&fewer])).len(), 1);
    }

    #[test]
    fn lanes_must_be_those_of_the_untraced_kernel_unless_it_is_asynchronous() {
        let (untraced, traced) = (counts(&[(1, 10, 320)]), counts(&[(1, 12, 330)]));
        for (asynchronous, problems) in [(false, 1), (true, 0)] {
            let found = findings(asynchronous, &[&untraced], Vec::new());
            assert_eq!(found.problems(&recording("ecl", &traced, &[&traced])).len(), problems);
        }
    }

    #[test]
    fn the_spread_is_the_largest_distance_of_two_untraced_runs() {
        let runs = [98, 100, 104].map(|events| counts(&[(1, events, 1000)]));
        let (near, far) = (counts(&[(1, 105, 1000)]), counts(&[(1, 110, 1000)]));
        let recordings = vec![recording("raw", &near, &[&near]), recording("ecl", &far, &[&far])];
        let found = findings(true, &[&runs[2], &runs[0], &runs[1]], recordings);
        assert_eq!(found.reference(), &runs[1]);
        assert!((found.spread().unwrap() - 6.0 / 98.0).abs() < 1e-12);
        assert_eq!((found.is_within_spread(&near), found.is_within_spread(&far)), (Some(true), Some(false)));
        let summary = found.summary();
        assert!(
            summary.starts_with(
                "walk small: 100 events untraced (3 untraced runs, at most 6.12% from each other)"
            ),
            "{summary}"
        );
        assert!(summary.ends_with("not within the spread of the untraced runs: ecl."), "{summary}");
        assert_eq!(findings(true, &[&near], Vec::new()).spread(), None);
    }

    #[test]
    fn numbers_of_events_that_differ_are_named() {
        let (one, other) = (counts(&[(1, 1000, 32)]), counts(&[(1, 1001, 32)]));
        let found = findings(
            false,
            &[&one],
            vec![recording("raw", &one, &[&one]), recording("ecl", &other, &[&other])],
        );
        assert_eq!(
            found.summary(),
            "walk small: 1,000 events untraced. Traces with another number: ecl 1,001."
        );
    }

    #[test]
    fn small_shares_keep_their_digits() {
        assert_eq!([0.0, 1e-7, 0.000_05, 0.012_34].map(percent), ["0%", "under 0.001%", "0.005%", "1.23%"]);
    }

    #[test]
    fn upper_bounds_are_left_out_and_named() {
        let traced = counts(&[(1, 10, 320), (2, 5, 40)]);
        let mut untraced = counts(&[(1, 10, 320), (2, 90, 40)]);
        untraced.set_bound("walk", 2);
        let found = findings(false, &[&untraced], vec![recording("raw", &traced, &[&traced])]);
        assert_eq!(found.problems(&found.recordings[0]), Vec::<String>::new());
        assert_eq!(found.distance(&traced), 0.0);
        assert_eq!(
            found.summary(),
            "walk small: 10 events untraced. Without walk:2, whose marks are conditional. Every trace has as many."
        );
    }
}
