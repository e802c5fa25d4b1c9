//! Runs the test kernel with streamed logs, and checks the drained runs.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use warptrace_abi::log::Entry;
use warptrace_format::LANES;
use warptrace_ptx::interpret::{Observed, Schedule};

use super::case::{Shape, Traced, check_track, inputs, time};
use super::drainer::{Drained, Drainer, Streaming};
use super::logs::Track;
use super::model::{ModelRun, events, lanes, of_lane};
use super::program::{self, Lane, Mix};
use super::segments::Taken;
use super::spans::{check_spans, read_spans};

/// Statistics of many launches, to check that the tests are meaningful.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) kept: u64,
    pub(crate) lost: u64,
    /// Tracks of warps without losses, with losses, and with a kept run after a lost one.
    pub(crate) whole: u64,
    pub(crate) broken: u64,
    pub(crate) resumed: u64,
    /// Segments that lanes took, and tickets without a segment.
    pub(crate) uses: u64,
    pub(crate) in_vain: u64,
    pub(crate) holes: u64,
    pub(crate) copies: u64,
}

impl Traced {
    pub(crate) fn stream(&self, seed: u64, mix: Mix, shape: Shape, streaming: Streaming, seen: &mut Seen) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let threads = program::lanes(&mut random, mix, shape.threads() * shape.blocks());
        self.stream_threads(seed, &threads, shape, streaming, &mut Schedule::random(seed), seen);
    }

    /// Returns the number of instructions executed.
    pub(crate) fn stream_threads(
        &self,
        seed: u64,
        threads: &[Lane],
        shape: Shape,
        streaming: Streaming,
        schedule: &mut Schedule,
        seen: &mut Seen,
    ) -> u64 {
        let warps = self.recorded_warps(shape);
        let mut memory = inputs(threads);
        let sizes = [warps, self.tracks(), self.span_bytes(shape) as u32];
        let mut drainer = Drainer::new(streaming, sizes, seed, &mut memory);
        let parameter = [drainer.parameter(), self.chosen_bytes()].concat();
        let host = &mut |memory: &mut _| drainer.act(memory);
        let observed = self.run(parameter, threads, shape, schedule, &mut memory, host);
        if self.recording.spans {
            check_spans(self, shape, &read_spans(drainer.spans(&memory)), &[]);
        }
        let drained = drainer.finish(&mut memory);
        self.check_drained(threads, shape, &observed, &drained, seen);
        observed.steps
    }

    fn check_drained(
        &self,
        threads: &[Lane],
        shape: Shape,
        observed: &Observed,
        drained: &Drained,
        seen: &mut Seen,
    ) {
        let clock = time(shape.clock);
        let warps = drained.ended.len();
        for (index, model, threads) in self.warps(threads, shape, observed) {
            let Some(warp) = index.map(|index| index as usize) else { continue };
            let ended = &drained.ended[warp];
            let there = ended.iter().map(Option::is_some);
            assert!(there.eq((0..LANES as usize).map(|lane| lane < threads.len())), "lanes that have left");
            let expected = [&model.trace, &model.twin];
            for (track, expected) in expected.into_iter().enumerate().take(self.tracks() as usize) {
                let stream = track * warps + warp;
                let mut runs: Vec<Taken> =
                    drained.runs.iter().filter(|run| run.stream as usize == stream).cloned().collect();
                runs.sort_by_key(|run| run.ticket);
                check_logs(&runs, clock);
                assert!(runs.iter().all(|run| run.entry.is_run()));
                let originals: Vec<ModelRun> =
                    runs.iter().filter(|run| run.is_original).map(|run| ModelRun::from(&run.entry)).collect();
                let taken = runs.len() as u64;
                let runs = without_copies(runs, clock);
                seen.copies += taken - runs.len() as u64;
                let lost = drained.lost[stream];
                assert_eq!(events(&originals) + lost, events(expected), "originals and lost ones are all");
                check_left(&runs, ended);
                if lost == 0 {
                    check_order(&runs, clock);
                }
                let entries: Vec<Entry> = runs.iter().map(|run| run.entry).collect();
                let found = Track { entries, lost_from: None, complete_from: None, lost, data: Vec::new() };
                if lost == 0 {
                    check_track(&found, expected, &threads, clock, self.exact());
                } else {
                    seen.resumed += u64::from(check_rest(&found, expected, &threads));
                }
                seen.kept += runs.len() as u64;
                seen.lost += lost;
                *(if lost == 0 { &mut seen.whole } else { &mut seen.broken }) += 1;
            }
        }
        let in_vain = drained.tickets - drained.uses;
        let logs = shape.threads() * shape.blocks() * self.tracks();
        assert!(in_vain <= u64::from(logs), "a lane keeps its ticket until it has a segment");
        assert!(
            in_vain == 0 || drained.lost.iter().any(|lost| *lost != 0),
            "a lane that waits gets a segment"
        );
        seen.uses += drained.uses;
        seen.in_vain += in_vain;
        seen.holes += drained.holes;
    }
}

/// Checks that each lane's log has the lane's runs, in the order in which they began.
fn check_logs(runs: &[Taken], clock: u32) {
    let mut last = [0; LANES as usize];
    for Taken { leader, entry, .. } in runs {
        assert!(entry.mask >> leader & 1 != 0, "lane {leader} keeps {entry:?}");
        let time = entry.time.wrapping_sub(clock);
        let before = std::mem::replace(&mut last[*leader as usize], time);
        assert!(before <= time, "lane {leader}: {entry:?} after {before}");
    }
}

/// Returns each run once, in the order in which the runs began, with the first snapshot that saw any copy.
/// Sole runs have no copies.
fn without_copies(mut runs: Vec<Taken>, clock: u32) -> Vec<Taken> {
    let key = |run: &Taken| (run.entry.time.wrapping_sub(clock), run.entry.mask.trailing_zeros());
    runs.sort_by_key(key);
    runs.dedup_by(|next, run| {
        let is_copy = !next.is_sole && !run.is_sole && key(next) == key(run);
        assert!(!is_copy || next.entry == run.entry, "{next:?} is no copy of {run:?}");
        run.seen = if is_copy { run.seen.min(next.seen) } else { run.seen };
        is_copy
    });
    runs
}

/// Checks that the predecessors of a run are seen at most one snapshot later. Predecessors began earlier and
/// share a lane with the run. The runs are in time order.
fn check_order(runs: &[Taken], clock: u32) {
    // For each lane, the earlier run that was seen last.
    let mut last: [Option<&Taken>; LANES as usize] = [None; LANES as usize];
    for at_once in runs.chunk_by(|one, other| one.entry.time == other.entry.time) {
        for run in at_once {
            for before in lanes(run.entry.mask).filter_map(|lane| last[lane as usize]) {
                // The runs of one loop come in any order: a long one takes several entries.
                let is_one_loop = before.is_sole
                    && run.is_sole
                    && before.entry.location == run.entry.location
                    && run.entry.time.wrapping_sub(before.entry.time) < LANES;
                let late = before.seen > run.seen + 1;
                assert!(is_one_loop || !late, "{before:?} came after {run:?} at {clock}");
            }
        }
        for run in at_once {
            for lane in lanes(run.entry.mask) {
                let newest = &mut last[lane as usize];
                if newest.is_none_or(|newest| newest.seen <= run.seen) {
                    *newest = Some(run);
                }
            }
        }
    }
}

/// Checks that no run of a lane is first seen more than one snapshot after the lane was seen to have left.
fn check_left(runs: &[Taken], ended: &[Option<u32>; LANES as usize]) {
    for Taken { leader, seen, .. } in runs {
        let ended = ended[*leader as usize];
        assert!(ended.is_none_or(|ended| *seen <= ended + 1), "lane {leader} left before its last run");
    }
}

/// Checks a warp's track with losses: number of events, and that each lane's runs are a subsequence of the
/// expected ones. Returns true if a run follows a lost one.
fn check_rest(track: &Track, expected: &[ModelRun], threads: &[Lane]) -> bool {
    let kept: Vec<ModelRun> = track.entries.iter().map(ModelRun::from).collect();
    let mut resumed = false;
    for lane in 0..LANES {
        let model = of_lane(expected, lane);
        assert!(model.is_empty() || (lane as usize) < threads.len());
        let mut rest = model.into_iter();
        let mut current = rest.next();
        for run in kept.iter().filter(|run| run.mask >> lane & 1 != 0) {
            loop {
                let here = current.as_mut().unwrap_or_else(|| panic!("lane {lane} was in no {run:?}"));
                if (here.mask, here.location) == (run.mask, run.location) && run.count <= here.count {
                    here.count -= run.count;
                    break;
                }
                resumed |= here.count != 0;
                current = rest.next();
            }
        }
    }
    resumed
}
