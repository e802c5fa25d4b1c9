//! Stress: warps that diverge in many ways. Computes nothing useful, and is the hardest to record.

use std::borrow::Cow;
use std::sync::OnceLock;

use clap::Args;
use rayon::prelude::*;
use warptrace_decoder::lanes::LaneDigest;
use warptrace_host::Launcher;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::stress::{self, StressOptions, StressResult};

use crate::subject::{Case, LaneReference, RunResult, Subject, SubjectRun};
use crate::table::count;

/// Between 10^8 and 10^9 events, independent of how a device groups the lanes of warps (see the test).
const FULL: StressOptions = StressOptions::new(1 << 19, 64);

/// The last block has a warp with some lanes without a walk, and warps without any walk.
const QUICK: StressOptions = StressOptions::new(400, 8);

pub(super) fn cases(quick: bool) -> Vec<Case> {
    vec![case(if quick { QUICK } else { FULL })]
}

pub(super) fn twin(quick: bool) -> Case {
    case(if quick { StressOptions::new(150, 8) } else { StressOptions::new(2_000, 16) })
}

/// Returns a quarter of the walks of `bench`.
pub(super) fn fidelity() -> Case {
    case(StressOptions::new(1 << 17, 64))
}

fn case(options: StressOptions) -> Case {
    let input = format!("{} walks, {} rounds", count(options.walks.into()), options.rounds);
    Case::new(&stress::PROGRAM, input, move || {
        Ok(Stress { options, expected: OnceLock::new(), lanes: OnceLock::new() })
    })
}

const DEFAULT: StressOptions = StressOptions::new(4096, 16);

/// Options of `record stress`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Walks, one a thread
    #[arg(long, default_value_t = DEFAULT.walks,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(stress::MAX_WALKS)))]
    walks: u32,

    /// Most rounds of a walk
    #[arg(long, default_value_t = DEFAULT.rounds, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Seed of the walks
    #[arg(long, default_value_t = DEFAULT.seed)]
    seed: u32,

    /// Threads of a block, a multiple of 32
    #[arg(long, value_name = "THREADS", default_value_t = DEFAULT.block, value_parser = parse_threads)]
    block: u32,
}

impl Options {
    pub(crate) fn case(&self) -> Case {
        let Self { walks, rounds, seed, block } = *self;
        case(StressOptions { walks, rounds, seed, block }).with(&[
            ("walks", &walks),
            ("rounds", &rounds),
            ("seed", &seed),
            ("block", &block),
        ])
    }
}

fn parse_threads(text: &str) -> Result<u32, String> {
    let threads = text.parse().ok().filter(|threads: &u32| threads.is_multiple_of(32));
    threads
        .filter(|threads| (32..=1024).contains(threads))
        .ok_or_else(|| "a block has 32 to 1024 threads, a multiple of 32".to_owned())
}

struct Stress {
    options: StressOptions,
    expected: OnceLock<StressResult>,
    lanes: OnceLock<Lanes>,
}

struct Lanes(Vec<LaneDigest>);

impl Stress {
    fn expected(&self) -> &StressResult {
        self.expected.get_or_init(|| stress::reference(&self.options))
    }
}

impl Subject for Stress {
    fn program(&self) -> &'static ProgramInfo {
        &stress::PROGRAM
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<SubjectRun<'_>> {
        let outcome = stress::run(launcher, &self.options)?;
        let result = Walked { subject: self, result: outcome.result };
        Ok(SubjectRun { kernel: outcome.kernel, launches: outcome.launches, result: Box::new(result) })
    }

    fn lanes(&self) -> Option<&dyn LaneReference> {
        let way = |thread| LaneDigest::new(stress::lane_locations(&self.options, thread));
        let threads = u64::from(self.options.walks).next_multiple_of(self.options.block.into());
        Some(self.lanes.get_or_init(|| Lanes((0..threads).into_par_iter().map(way).collect())))
    }
}

impl LaneReference for Lanes {
    fn lane(&self, _: u32, thread: u64) -> LaneDigest {
        self.0[thread as usize]
    }
}

struct Walked<'s> {
    subject: &'s Stress,
    result: StressResult,
}

impl RunResult for Walked<'_> {
    fn bytes(&self) -> Cow<'_, [u8]> {
        let StressResult { sums, passed, bins, counts } = &self.result;
        let parts = [sums, passed, bins, counts];
        Cow::Owned(parts.iter().flat_map(|part| bytemuck::cast_slice::<u32, u8>(part)).copied().collect())
    }

    fn check(&self) -> Result<String, String> {
        stress::check_against(&self.subject.options, self.subject.expected(), &self.result)
    }

    fn expected_lanes(&self) -> Option<u64> {
        Some(self.subject.expected().lane_events(&self.subject.options))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use warptrace_kernels::stress::at;

    use super::*;

    /// Returns the minimum number of events of a warp. Its lanes begin each round together, and each location
    /// has at least as many events as the lane with the most visits.
    fn fewest_events(options: &StressOptions, warp: u64) -> u64 {
        let mut most: BTreeMap<(u32, u16), u64> = BTreeMap::new();
        for thread in warp * 32..(warp + 1) * 32 {
            let mut passed: BTreeMap<(u32, u16), u64> = BTreeMap::new();
            let mut round = 0;
            for location in stress::lane_locations(options, thread) {
                round += u32::from(location == at::ROUND);
                *passed.entry((round, location)).or_default() += 1;
            }
            for (place, times) in passed {
                let most = most.entry(place).or_default();
                *most = times.max(*most);
            }
        }
        most.values().sum()
    }

    #[test]
    fn a_full_size_trace_has_over_a_hundred_million_events_on_any_device() {
        let (warps, sample) = (u64::from(FULL.walks) / 32, 64);
        let events: u64 = (0..sample).map(|warp| fewest_events(&FULL, warp)).sum();
        assert!(events * warps / sample >= 100_000_000, "{events} events in {sample} of {warps} warps");
        // Each visit of a lane adds at most one event.
        let lanes: u64 =
            (0..sample * 32).map(|thread| stress::lane_locations(&FULL, thread).len() as u64).sum();
        assert!(lanes * warps / sample < 1_000_000_000, "{lanes} lanes in {sample} of {warps} warps");
    }
}
