//! Figures of several files, partly sent by other processes as bytes.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use crate::support::{event, metadata, recorded, written};
use warptrace_analysis::{
    Analysis, AnalysisError, FileHead, FilePart, Selection, SetAnalysis, SetRow, SetTable,
};
use warptrace_decoder::TraceFile;
use warptrace_format::file::{COUNTING, LaunchInfo};

fn traces() -> Vec<(String, TraceFile)> {
    // Without the number of instructions, with a kernel that the others do not have, and with an assumption.
    let plain = metadata(&[(1, "enter", 3), (2, "leave", 0)]).with_property(COUNTING, "all");
    let launch = LaunchInfo::new(0, 0, [1, 1, 1], [32, 1, 1], 0).unwrap();
    let plain =
        written(&plain, &launch, &[(0, vec![event(1, 7), event(2, 7), event(9, 1)])].into(), |_, _| {});
    [
        ("a", recorded("fractal-runs")),
        ("b", recorded("mis")),
        ("c", recorded("fractal")),
        ("d", TraceFile::from_bytes(plain).unwrap()),
    ]
    .map(|(name, trace)| (name.to_owned(), trace))
    .into()
}

/// Sums the figures of the files. Each file passes through `carry`.
fn summed(
    traces: &[(String, TraceFile)],
    selection: &Selection,
    carry: (impl Fn(FileHead) -> FileHead, impl Fn(FilePart) -> FilePart),
) -> (SetAnalysis, Result<Analysis, AnalysisError>) {
    let mut table = SetTable::default();
    for (name, trace) in traces {
        table.add(&carry.0(FileHead::new(name, trace))).unwrap();
    }
    let mut set = SetAnalysis::new(table);
    for (name, trace) in traces {
        let part = set.part(name, trace, selection).unwrap();
        set.add(carry.1(part));
    }
    let sum = set.sum();
    (set, sum)
}

#[test]
fn figures_that_come_as_bytes_are_the_same() {
    let traces = traces();
    let kernel = |name: &str| Selection { kernel: Some(name.to_owned()), ..Selection::default() };
    for selection in [Selection::default(), kernel("fractal"), kernel("k"), kernel("none")] {
        for traces in [&traces[..], &traces[..3]] {
            let here = summed(traces, &selection, (|head| head, |part| part));
            let as_bytes = |part: FilePart| {
                let bytes = borsh::to_vec(&part).unwrap();
                for length in (0..bytes.len()).step_by(101) {
                    borsh::from_slice::<FilePart>(&bytes[..length]).unwrap_err();
                }
                borsh::from_slice(&bytes).unwrap()
            };
            let head = |head| borsh::from_slice(&borsh::to_vec(&head).unwrap()).unwrap();
            let there = summed(traces, &selection, (head, as_bytes));
            assert_eq!(format!("{:?}", there.0.files()), format!("{:?}", here.0.files()));
            assert_eq!(there.0.separate_locations(), here.0.separate_locations());
            match (here.1, there.1) {
                (Ok(here_sum), Ok(there_sum)) => {
                    assert_eq!(there_sum, here_sum);
                    let lines = here_sum.lines.iter().map(SetRow::of_line);
                    let kernels = here_sum.kernels.iter().map(|kernel| SetRow::Kernel(kernel.kernel.clone()));
                    for row in lines.chain(kernels) {
                        let spreads = |set: &SetAnalysis| format!("{:?}", set.spreads(&row));
                        assert_eq!(spreads(&there.0), spreads(&here.0));
                        assert_eq!(there.0.files_with(&row), here.0.files_with(&row));
                    }
                }
                (Err(here), Err(there)) => {
                    assert!(there.is_of_selection());
                    assert_eq!(there.to_string(), here.to_string());
                }
                _ => panic!("figures of one and not of the other"),
            }
        }
    }
}

#[test]
fn bytes_of_figures_do_not_grow_with_events() {
    let metadata = metadata(&[(1, "enter", 3), (2, "step", 5), (3, "leave", 7)]);
    let mut state = 1_u32;
    // Up to 20 steps, with lanes that no other warp has.
    let mut warp = |number: u32| {
        let steps = (0..=number % 20).map(|_| {
            state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            event(2, state | 1)
        });
        [event(1, u32::MAX)].into_iter().chain(steps).chain([event(3, u32::MAX)]).collect()
    };
    let mut size = |warps: u32| {
        let launch = LaunchInfo::new(0, 0, [warps, 1, 1], [32, 1, 1], 0).unwrap();
        let warps = (0..warps).map(|number| (number, warp(number))).collect();
        let trace = TraceFile::from_bytes(written(&metadata, &launch, &warps, |_, _| {})).unwrap();
        let part = FilePart::new("a", &trace, &Selection::default(), false).unwrap();
        let events = trace.totals(0, 0).events;
        (events, borsh::to_vec(&part).unwrap().len())
    };
    let ((few, small), (many, large)) = (size(32), size(2048));
    assert!(many > 50 * few, "{few} and {many} events");
    // Numbers have a fixed size. Distributions grow, up to the number of distinct step counts.
    assert!(large < small + 2_000, "{small} and {large} bytes");
}
