//! Compares with the simulator's recorder, on the same events of the same groups in the same order.

use warptrace_abi::log::{ENTRY_BYTES, LaunchLogs};
use warptrace_device::simt;
use warptrace_device::simt::host::with_lane;
use warptrace_format::Counting;
use warptrace_format::span::WarpSpan;
use warptrace_ptx::splice::Placement;
use warptrace_sim::{Launch, Simulator};

use super::Extent;
use super::case::{Outcome, Shape, Splicing, Traced};
use super::logs::{ACCOUNT_BYTES, Track, read};
use super::model::{ModelRun, Step, of_lane, steps};
use super::sequences::{shape, splicings};

#[derive(Clone, Copy)]
#[repr(C, align(128))]
struct Line([u32; 32]);

/// Memory of a launch on the host: logs, reservation counter, and the warps' counts followed by the spans.
struct HostLogs {
    lines: Vec<Line>,
    claims: [u64; 2],
    accounts: Vec<[u64; 4]>,
}

fn record(warps: &[Vec<Step>], shape: Shape, splicing: Splicing) -> Vec<Vec<Track>> {
    let tracks = 1 + u32::from(splicing.recording.dual);
    let mut layout = shape.layout(tracks);
    layout.zeroed = true;
    let lines = ((layout.entries * ENTRY_BYTES) as usize).div_ceil(size_of::<Line>());
    let spans = if splicing.recording.spans { shape.warps() as usize * size_of::<WarpSpan>() } else { 0 };
    let mut memory = HostLogs {
        lines: vec![Line([0; 32]); lines],
        claims: [shape.claimed, 0],
        accounts: vec![[0; 4]; (layout.account_bytes() + spans).div_ceil(ACCOUNT_BYTES)],
    };
    let logs = LaunchLogs {
        logs: memory.lines.as_mut_ptr().expose_provenance() as u64,
        claims: memory.claims.as_mut_ptr().expose_provenance() as u64,
        accounts: memory.accounts.as_mut_ptr().expose_provenance() as u64,
        ..layout.launch
    };
    let kernel = || {
        let warp = simt::linear_block() * shape.block_warps() + simt::warp_in_block();
        let all = simt::active_mask();
        if simt::lane() == 0 {
            with_lane(|lane| {
                let run = |run: &ModelRun| {
                    let count = u32::try_from(run.count).expect("a count of a test");
                    lane.record(run.location, run.mask, count);
                };
                for step in &warps[warp as usize] {
                    match step {
                        Step::Event(event) => run(event),
                        Step::Tick(_) => {}
                        Step::Leave { runs, .. } => runs.iter().for_each(run),
                    }
                }
            });
        }
        // No lane leaves and ends its logs before everything is recorded.
        // SAFETY: all lanes of the warp execute this.
        unsafe { simt::sync_warp(all) };
    };
    let launch = Launch::new(shape.grid, shape.block);
    // SAFETY: the addresses refer to `memory`, which has the sizes of the layout and is not accessed
    // otherwise until the launch returns.
    let launch = unsafe { launch.traced(logs, splicing.recording) };
    Simulator::new().launch(&launch, &kernel).expect("the launch runs");
    let entries: Vec<u8> = memory.lines.iter().flat_map(|line| line.0).flat_map(u32::to_le_bytes).collect();
    let claims: Vec<u8> = memory.claims.into_iter().flat_map(u64::to_le_bytes).collect();
    let accounts: Vec<u8> =
        memory.accounts.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
    let bytes = (layout.entries * ENTRY_BYTES) as usize;
    read(&layout, &entries[..bytes], &claims, &accounts[..layout.account_bytes()], 0)
}

fn runs(track: &Track) -> Vec<ModelRun> {
    assert_eq!(track.lost, 0);
    track.entries.iter().map(ModelRun::from).collect()
}

fn compare(outcome: &Outcome, shape: Shape, splicing: Splicing) {
    let steps: Vec<Vec<Step>> = (0..shape.warps())
        .map(|warp| {
            let markers = outcome.observed.markers.iter().filter(|event| event.warp == warp).copied();
            steps(markers, splicing.recording.counting == Counting::All)
        })
        .collect();
    let native = record(&steps, shape, splicing);
    assert_eq!(native.len(), outcome.tracks.len());
    for (number, (native, spliced)) in native.iter().zip(&outcome.tracks).enumerate() {
        for (warp, (native, spliced)) in native.iter().zip(spliced).enumerate() {
            let (mut native, mut spliced) = (runs(native), runs(spliced));
            for lane in 0..32 {
                let (native, spliced) = (of_lane(&native, lane), of_lane(&spliced, lane));
                assert_eq!(spliced, native, "track {number}, warp {warp}, lane {lane}");
            }
            // The simulator may continue a counted loop's run; events of joined markers are one entry of the twin.
            if number == 0 && splicing.recording.counting != Counting::All {
                native.sort_unstable();
                spliced.sort_unstable();
                assert_eq!(spliced, native, "warp {warp}: entries");
            }
        }
    }
}

in_both_tiers! {
    the_simulators_recorder_writes_the_same_entries: check_native;
}

fn check_native(extent: Extent) {
    let [registers, shared] = [(Placement::Registers, false), (Placement::Shared, true)]
        .map(|(placement, calls)| extent.choose(splicings(placement, calls)));
    let mut entries = 0;
    for (number, splicing) in registers.chain(shared.map(|(number, splicing)| (16 + number, splicing))) {
        let traced = Traced::new(splicing);
        for round in 4 * number..4 * number + extent.rounds(4) {
            let mix = traced.mix(12 + 9 * (round % 5) as usize, round % 2 == 0, round % 3 != 0);
            let shape = shape(round, 1 << 13);
            let outcome = traced.check(1_000 + round, mix, shape);
            compare(&outcome, shape, splicing);
            entries += outcome.tracks.iter().flatten().map(|track| track.entries.len() as u64).sum::<u64>();
        }
    }
    assert!(entries > extent.least(10_000), "{entries}");
}
