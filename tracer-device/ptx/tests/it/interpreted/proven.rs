//! Proven loops, on random kernels: counting must not change the recorded events.

mod generated;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use warptrace_format::LANES;
use warptrace_ptx::interpret::{Launch, Memory, Observed, Schedule, run};
use warptrace_ptx::splice::{Marker, Options, Placement, Recording, Spliced, splice};
use warptrace_ptx::{Flaw, with_flaw};

use self::generated::kernel;
use super::Extent;
use super::foreign::program;
use super::logs::{Layout, Track};
use super::model::{Model, ModelRun, of_lane, sorted, steps};
use warptrace_abi::log::FirstSegments;

/// Number of kernels in the full tier, and the variable that overrides it.
const KERNELS: u64 = 200;
const KERNELS_VARIABLE: &str = "WARPTRACE_RANDOM_KERNELS";
/// Words of input; a power of two.
pub(super) const WORDS: u32 = 64;
const INPUT: u64 = 0x10_0000;
const OUTPUT: u64 = 0x20_0000;
/// Threads of a block: a whole and a partial warp.
const THREADS: u32 = 44;
const BLOCKS: u32 = 2;

struct Outcome {
    observed: Observed,
    tracks: Vec<Vec<Track>>,
}

fn launch(spliced: &Spliced, recording: Recording, seed: u64) -> Result<Outcome, String> {
    let program = program(&spliced.text);
    let mut memory = Memory::new();
    let word = |index: u32| (index.wrapping_add(seed as u32).wrapping_mul(2_654_435_761)) >> 27;
    memory.declare(INPUT, (0..WORDS).flat_map(|index| word(index).to_le_bytes()).collect());
    memory.declare(OUTPUT, vec![0; (4 * WORDS) as usize]);
    let tracks = 1 + u32::from(recording.dual);
    let warps = BLOCKS * THREADS.div_ceil(LANES);
    let layout = Layout::new([warps, tracks], THREADS, FirstSegments::of_streams(8), 4_000, 0);
    layout.declare(&mut memory, 0);
    let parameters = vec![
        INPUT.to_le_bytes().to_vec(),
        OUTPUT.to_le_bytes().to_vec(),
        5_u32.to_le_bytes().to_vec(),
        layout.parameter(),
    ];
    let launch = Launch {
        dynamic_shared: spliced.kernels[0].shared_bytes * THREADS.div_ceil(LANES),
        max_steps: 400_000,
        ..super::launch("k$traced", [BLOCKS, 1, 1], [THREADS, 1, 1], parameters)
    };
    let mut schedule = Schedule::random(seed).where_ways_meet();
    let observed = run(&program, &launch, &mut memory, &mut schedule).map_err(|error| error.to_string())?;
    Ok(Outcome { observed, tracks: layout.read(&memory, 0) })
}

/// Traces a kernel. Returns the number of counted iterations, or a description of wrong events.
fn check(text: &str, seed: u64) -> Result<u64, String> {
    let placements = [Placement::Registers, Placement::Shared, Placement::Local];
    let placement = Some(placements[(seed / 3 % 3) as usize]);
    let recording = Recording { dual: seed.is_multiple_of(3), placement, ..Recording::DEFAULT };
    let options = Options { recording: Some(recording), architecture: 90, ..Options::default() };
    let spliced = splice(text, &options).expect("it can be spliced");
    let outcome = launch(&spliced, recording, seed)?;
    let counted = |location: u16| spliced.kernels[0].counted.contains(&location);
    let mut ticks = 0;
    for warp in 0..BLOCKS * THREADS.div_ceil(LANES) {
        let markers = outcome.observed.markers.iter().filter(|event| event.warp == warp).copied();
        let markers: Vec<_> = markers.collect();
        for event in &markers {
            if let Marker::Tick(location, _) = event.marker {
                ticks += u64::from(counted(location));
            }
        }
        let empty = markers.iter().enumerate().any(|(index, event)| {
            let before = markers[..index].iter().rfind(|before| before.mask == event.mask);
            matches!(event.marker, Marker::Leave(_))
                && matches!(before.map(|before| before.marker), Some(Marker::Enter(_)))
        });
        let model = Model::new(&steps(markers.into_iter(), false));
        for (number, (track, expected)) in outcome.tracks.iter().zip([&model.trace, &model.twin]).enumerate()
        {
            let track = &track[warp as usize];
            if track.lost > 0 {
                return Err(format!("warp {warp} has lost {} events", track.lost));
            }
            let runs: Vec<ModelRun> =
                track.entries.iter().map(ModelRun::from).filter(|run| run.count > 0).collect();
            for lane in 0..LANES {
                let (found, expected) = (of_lane(&runs, lane), of_lane(expected, lane));
                if found != expected {
                    return Err(format!("warp {warp}, lane {lane}: {found:?} and not {expected:?}"));
                }
            }
            // Entries are the same. Exception: a loop without an iteration ends the previous run.
            if number == 0 && !empty && sorted(&runs) != sorted(expected) {
                return Err(format!("warp {warp}: entries {runs:?} and not {expected:?}"));
            }
        }
    }
    Ok(ticks)
}

fn generate(seed: u64) -> String {
    kernel(&mut ChaCha8Rng::seed_from_u64(seed))
}

fn number_of_kernels() -> u64 {
    let asked = std::env::var(KERNELS_VARIABLE).ok();
    asked.map_or(KERNELS, |number| number.parse().expect("a number of kernels"))
}

in_both_tiers! {
    random_kernels_have_the_same_events_counted_or_not: check_random;
}

fn check_random(extent: Extent) {
    let (mut ticks, mut with) = (0, 0);
    let kernels = extent.rounds(number_of_kernels());
    for seed in 0..kernels {
        let text = generate(seed);
        match check(&text, seed) {
            Ok(counted) => {
                ticks += counted;
                with += u64::from(counted > 0);
            }
            Err(problem) => panic!("kernel {seed}: {problem}\n{text}"),
        }
    }
    println!("{kernels} kernels, {with} of them with loops that are counted: {ticks} ticks of groups");
    assert!(with > kernels / 8 && ticks > kernels, "{with} {ticks}");
}

#[test]
fn each_mistake_in_the_analysis_is_found() {
    // Each flaw with a kernel that shows it. Other kernels are searched only if the generator changes.
    let flaws = [
        (Flaw::Loads, 62),
        (Flaw::Lanes, 1),
        (Flaw::Atomics, 16),
        (Flaw::Shuffles, 85),
        (Flaw::Joins, 154),
        (Flaw::Iterations, 1529),
        (Flaw::Guards, 346),
        (Flaw::Meetings, 249),
        (Flaw::Points, 11),
        (Flaw::Ends, 15),
        (Flaw::Branches, 10),
        (Flaw::Entries, 2),
    ];
    for (flaw, known) in flaws {
        let shows = |seed: &u64| with_flaw(flaw, || check(&generate(*seed), *seed)).is_err();
        let found = std::iter::once(known).chain(0..1_000).find(shows);
        println!("{flaw:?} is found in kernel {found:?}");
        assert!(found.is_some(), "{flaw:?} is not found");
    }
}

#[test]
fn lanes_bring_different_values_out_of_a_loop() {
    let text = ".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1, .param .u32 k_param_2)
{
	.reg .pred %p<4>;
	.reg .b32 %r<8>;
	mov.u32 %r1, %tid.x;
	and.b32 %r1, %r1, 3;
	mov.u32 %r2, 0;
L1:
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p1, %r2, %r1;
	@%p1 bra L1;
L2:
	mov.u32 %r3, 0;
	// warptrace.loop.enter 1
L3:
	// warptrace.loop.tick 1 1
	add.u32 %r3, %r3, 1;
	setp.lt.u32 %p1, %r3, %r2;
	@%p1 bra L3;
	// warptrace.loop.leave 1
	ret;
}
";
    let seeds = 0..60;
    assert!(seeds.clone().all(|seed| check(text, seed) == Ok(0)), "it is not counted");
    assert!(seeds.into_iter().any(|seed| with_flaw(Flaw::Iterations, || check(text, seed)).is_err()));
}
