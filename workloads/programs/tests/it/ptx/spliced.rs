//! Checks that all kernels can be traced in all ways.

use std::collections::BTreeMap;

use warptrace_ptx::splice::{LogKind, Options, Placement, Recording, TRACED_SUFFIX, splice};
use warptrace_ptx::{Module, fuzzing};

use super::{RECORDINGS, kernels, ptx};

/// An unknown architecture, and one with and one without a `YIELD` where a segment is reserved.
const ARCHITECTURES: [u32; 3] = [0, 80, 90];
/// Instruction by which hardware counts events.
const MARK: &str = "pmevent.mask ";

fn lines_of(text: &str, prefix: &str) -> BTreeMap<String, usize> {
    let module = Module::parse(text).expect("it is PTX");
    let of = |text: &str| text.lines().filter(|line| line.trim_start().starts_with(prefix)).count();
    let entries = module.functions.iter().filter(|function| function.is_entry());
    entries.map(|entry| (entry.name.to_owned(), of(entry.span.text(text)))).collect()
}

fn events_of(text: &str) -> BTreeMap<String, usize> {
    let mut events = lines_of(text, "// warptrace.loc ");
    for count in 1..=64 {
        let ticks = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            matches!(words[..], ["//", "warptrace.loop.tick", _, number] if number.parse() == Ok(count))
        };
        let module = Module::parse(text).expect("it is PTX");
        for entry in module.functions.iter().filter(|function| function.is_entry()) {
            let found = entry.span.text(text).lines().filter(|line| ticks(line.trim())).count();
            *events.entry(entry.name.to_owned()).or_default() += count * found;
        }
    }
    events
}

#[test]
fn nothing_asked_for_changes_nothing() {
    let Some(ptx) = ptx() else { return };
    let names: Vec<&str> = kernels().into_iter().collect();
    for kernels in [None, Some(names.as_slice())] {
        let spliced = splice(ptx, &Options { kernels, ..Options::default() }).expect("it can be spliced");
        assert!(spliced.text == ptx, "the text has changed");
        assert!(spliced.kernels.is_empty());
    }
}

pub(crate) fn check(step: usize) {
    let Some(ptx) = ptx() else { return };
    let mut ways = 0..;
    let markers = lines_of(ptx, "// warptrace.");
    let placements = [None, Some(Placement::Registers), Some(Placement::Shared), Some(Placement::Local)];
    for recording in RECORDINGS {
        for placement in placements {
            for ((marks, ring), architecture) in [(false, false), (true, false), (false, true)]
                .into_iter()
                .flat_map(|it| ARCHITECTURES.map(|a| (it, a)))
            {
                if ways.next().is_some_and(|way| way % step != 0) {
                    continue;
                }
                let logs = if ring { LogKind::Ring } else { LogKind::Kept };
                let options = Options {
                    recording: Some(Recording { logs, placement, ..recording }),
                    architecture,
                    marks: u32::from(marks),
                    ..Options::default()
                };
                let spliced = splice(ptx, &options).unwrap_or_else(|error| panic!("{options:?}: {error}"));
                let names = spliced.kernels.iter().map(|kernel| kernel.name.as_str());
                assert_eq!(names.collect::<std::collections::BTreeSet<_>>(), kernels(), "{options:?}");
                let found = lines_of(&spliced.text, "// warptrace.");
                for kernel in &spliced.kernels {
                    assert_eq!(kernel.traced_name, format!("{}{TRACED_SUFFIX}", kernel.name));
                    assert!(placement.is_none_or(|placement| placement == kernel.placement), "{options:?}");
                    assert_eq!(kernel.shared_bytes > 0, kernel.placement == Placement::Shared, "{options:?}");
                    assert!(kernel.markers > 0, "{}: {options:?}", kernel.name);
                    // The untraced kernel does not change. The copy contains its markers; those before an
                    // exit occur once per branch to the exit.
                    let [untraced, copy] = [&kernel.name, &kernel.traced_name].map(|name| found[name]);
                    assert!(marks || untraced == markers[&kernel.name], "{}: {options:?}", kernel.name);
                    assert!(copy >= markers[&kernel.name], "{}: {options:?}", kernel.name);
                }
            }
        }
    }
}

#[test]
fn all_kernels_can_be_recorded_in_some_ways() {
    // 11 does not divide 144, so every value of every option occurs.
    check(11);
}

#[test]
fn what_is_spliced_reads_as_any_module() {
    let Some(ptx) = ptx() else { return };
    for (recording, placement) in RECORDINGS.into_iter().zip([None, None, Some(Placement::Shared), None]) {
        let options = Options {
            recording: Some(Recording { placement, ..recording }),
            architecture: 80,
            marks: 1,
            ..Options::default()
        };
        let spliced = splice(ptx, &options).expect("it can be spliced");
        assert!(fuzzing::check(&spliced.text), "{options:?}: it is no module");
    }
}

#[test]
fn marks_stand_for_each_event() {
    let Some(ptx) = ptx() else { return };
    let events = events_of(ptx);
    assert!(events.values().all(|events| *events > 0), "{events:?}");
    let untraced = splice(ptx, &Options { marks: 1, ..Options::default() }).expect("it can be spliced");
    let marks = lines_of(&untraced.text, MARK);
    let more = marks.iter().filter(|(kernel, marks)| **marks > events[*kernel]).count();
    assert!(more > 0 && more < events.len() && marks.iter().all(|(kernel, marks)| *marks >= events[kernel]));
    let options = Options { marks: 1, recording: Some(RECORDINGS[0]), ..Options::default() };
    let both = lines_of(&splice(ptx, &options).expect("it can be spliced").text, MARK);
    // If several branches lead to the kernel's end, each has the marks on its path.
    for (kernel, marks) in &marks {
        assert_eq!((both[kernel], both[&format!("{kernel}{TRACED_SUFFIX}")]), (*marks, *marks), "{kernel}");
    }
}
