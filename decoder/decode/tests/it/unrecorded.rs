//! Launches that were not recorded.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use crate::support::sections::Sections;
use warptrace_decoder::{Problem, TraceFile};
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{LaunchInfo, Unrecorded, UnrecordedLaunches};

fn of(kernel: &str, reason: &str, launches: u64) -> UnrecordedLaunches {
    UnrecordedLaunches { kernel: kernel.to_owned(), reason: reason.to_owned(), launches }
}

fn part(launches: &[UnrecordedLaunches], note: &str) -> Vec<u8> {
    let part = Unrecorded { launches: launches.to_vec(), notes: vec![note.to_owned()] };
    part.encode_sections().remove(0)
}

fn bytes(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Sections::new(&crate::support::metadata(vec![CodecSpec::Raw]));
    for number in 0..2 {
        let launch = LaunchInfo::new(number, 0, [1, 1, 1], [32, 1, 1], 0).unwrap();
        file.put(&launch.encode_section());
        file.put_accounts(&launch, 0, &[WarpAccount { finished: 1, ..WarpAccount::default() }], &[]);
    }
    parts.iter().for_each(|part| file.put(part));
    file.finish()
}

#[test]
fn sections_add_up_and_the_sentence_says_what_is_missing() {
    let chosen = of("b", UnrecordedLaunches::NOT_ASKED_FOR, 9);
    let parts =
        [part(&[of("a\n", "no PTX", 1), chosen.clone()], "one"), part(&[of("a\n", "no PTX", 2)], "two")];
    let all = bytes(&parts);
    for bytes in [all.clone(), all[..all.len() - 48].to_vec()] {
        let trace = TraceFile::from_bytes(bytes).unwrap();
        let found = trace.unrecorded();
        assert_eq!(found.launches, [chosen.clone(), of("a\\n", "no PTX", 3)]);
        assert_eq!(found.notes, ["one", "two"]);
        let said = "NOT ALL LAUNCHES: 3 of 5 launches were not traced (a\\n: no PTX); info lists them";
        assert_eq!(trace.not_traced().as_deref(), Some(said));
        assert!(trace.state().sentence.contains(&format!("; {said}")), "{:?}", trace.state());
    }
    let trace = TraceFile::from_bytes(all).unwrap();
    assert!(trace.verify().is_ok() && trace.state().is_whole && trace.state().warns());
    let trace = TraceFile::from_bytes(bytes(&[part(&[chosen], "")])).unwrap();
    assert!(trace.not_traced().is_none() && trace.state().is_plain());
}

#[test]
fn a_damaged_section_is_reported_and_the_others_are_read() {
    let mut bad = part(&[of("a", "no PTX", 1)], "one");
    *bad.last_mut().unwrap() ^= 1;
    let trace = TraceFile::from_bytes(bytes(&[bad, part(&[of("b", "no PTX", 1)], "two")])).unwrap();
    assert_eq!(trace.unrecorded().launches, [of("b", "no PTX", 1)]);
    let problems = trace.verify().problems;
    assert!(matches!(problems[..], [Problem::Unreadable(_)]), "{problems:?}");
    let sentence = &trace.state().sentence;
    assert!(
        sentence.starts_with("INCOMPLETE trace: which launches were not traced, which cannot"),
        "{sentence}"
    );
    assert!(
        sentence.contains("; NOT ALL LAUNCHES: 1 of 3 launches was not traced (b: no PTX)"),
        "{sentence}"
    );
}

#[test]
fn what_a_file_has_in_all_is_bounded() {
    let many = |name: &str| -> Vec<_> { (0..40_000).map(|at| of(&format!("{name}{at}"), "", 1)).collect() };
    let sections = |name: &str| Unrecorded { launches: many(name), notes: Vec::new() }.encode_sections();
    let trace = TraceFile::from_bytes(bytes(&[sections("a"), sections("b")].concat())).unwrap();
    assert!(trace.unrecorded().launches.len() <= 65_536);
    assert!(trace.state().sentence.contains("over 65536 kernels or 1024 notes in all"));
}
