//! Tests of recorded accesses.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use warptrace_abi::run::RUN_SPEC;
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_format::file::{SiteKind, SiteSpace};
use warptrace_spec::{Policy, RunSpec, Spaces};

use super::{ShimRun, both_with, data, spec};

/// Values in access order, by launch, warp, lane and site.
type Accesses = BTreeMap<(u32, u32, u32, u16), Vec<u64>>;

fn seen(run: &ShimRun) -> Accesses {
    let mut seen = Accesses::new();
    for line in run.log().lines().filter_map(|line| line.strip_prefix("access ")) {
        let words: Vec<u64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        let [launch, warp, lane, site, value] = words[..] else { panic!("{line}") };
        seen.entry((launch as u32, warp as u32, lane as u32, site as u16)).or_default().push(value);
    }
    seen
}

fn recorded(trace: &TraceFile) -> Accesses {
    let mut found = Accesses::new();
    for launch in trace.launches().map(|launch| launch.number()).collect::<Vec<_>>() {
        let mut take = |warp: warptrace_decoder::WarpAccesses| {
            assert_eq!((warp.left_out, warp.unmatched, warp.damaged), (0, 0, 0));
            for (site, lane) in trace.sites().flat_map(|site| (0..32).map(|lane| (site.number, lane))) {
                let all: Vec<u64> = warp.lane(site, lane).collect();
                if !all.is_empty() {
                    found.insert((launch, warp.warp, lane, site), all);
                }
            }
            ControlFlow::Continue(())
        };
        let walked = trace.accesses_in_order(launch, &WarpFilter::all(), &mut take);
        assert!(walked.expect("sound").is_continue());
    }
    found
}

fn run(words: &[&str], change: impl FnOnce(&mut RunSpec)) -> Option<ShimRun> {
    both_with(words, &[(RUN_SPEC, &spec(change)), ("TEST_DRIVER_ACCESSES", "1")])
}

#[test]
fn the_file_has_the_accesses_that_the_driver_saw() {
    let words = ["dlsym", &data("kernels.ptx"), "twice"];
    for chunk_bytes in [512, 4096] {
        let Some(traced) = run(&words, |spec| {
            spec.recording.accesses = Some(Spaces::ALL);
            spec.recording.chunk_bytes = chunk_bytes;
        }) else {
            return;
        };
        assert_eq!(traced.verified().0, 2, "{:?}", traced.report());
        let (trace, seen) = (traced.trace(), seen(&traced));
        assert_eq!(recorded(&trace), seen, "{:?}", traced.report());
        let is_recorded = |site: u16| !trace.is_derived(site);
        let recorded = seen.iter().filter(|((.., site), _)| is_recorded(*site));
        let count: usize = recorded.map(|(_, all)| all.len()).sum();
        assert!(count > 100, "{count}");
        let said = traced.report().iter().any(|line| line.contains(&format!(", {count} accesses recorded")));
        assert!(said, "{:?}", traced.report());
        assert_eq!(trace.metadata().property("accesses"), Some("all"));
        let kinds: Vec<_> = trace.sites().map(|site| (site.kind, site.space, site.bytes)).collect();
        assert!(kinds.contains(&(SiteKind::Load, SiteSpace::Global, 4)), "{kinds:?}");
        assert!(trace.sites().all(|site| site.location != 0 && site.line != 0), "each block has a point");
        assert!(trace.sites().any(|site| site.file.ends_with("kernels.cu")));
    }
}

#[test]
fn what_was_not_asked_for_is_not_recorded() {
    let words = ["dlsym", &data("kernels.ptx"), "twice"];
    let shared = Spaces { shared: true, ..Spaces::NONE };
    let Some(traced) = run(&words, |spec| spec.recording.accesses = Some(shared)) else { return };
    assert_eq!(traced.verified().0, 2);
    assert_eq!(recorded(&traced.trace()), Accesses::new());
    let Some(traced) = run(&words, |_| ()) else { return };
    let trace = traced.trace();
    assert!(!trace.has_accesses() && trace.sites().len() == 0);
}

#[test]
fn accesses_need_the_policy_stop() {
    let mut spec = RunSpec::default();
    spec.recording.accesses = Some(Spaces::ALL);
    spec.recording.policy = Policy::Ring;
    let error = spec.check().expect_err("it is refused").to_string();
    assert!(error.contains("leave `policy` out"), "{error}");
}
