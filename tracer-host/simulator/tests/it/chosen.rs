//! Traced launches in which only some warps record.

use crate::device_memory::{AMPLE, DeviceMemory, Encoded};
use crate::streamed_memory::{Host, Room, Runs};
use warptrace_device::simt;
use warptrace_encode::native::Schedule;
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::codec::{CodecSpec, PredictParams};
use warptrace_macros::kernels;
use warptrace_sim::{Launch, Recording, Simulator};

/// Threads of a block: two whole warps and one of six lanes.
const THREADS: u32 = 70;
const BLOCK_WARPS: u32 = 3;
const GRID: [u32; 3] = [3, 2, 2];
const BLOCKS: u32 = 12;

#[kernels(device = warptrace_device, only_marked)]
mod rounds_kernel {
    use super::*;

    #[kernel]
    pub fn rounds() {
        trace!("ENTER");
        for _ in 0..simt::lane() % (2 + simt::block_idx()[0] + simt::block_idx()[1]) {
            trace!("STEP");
        }
        trace!("END");
    }
}
use rounds_kernel::rounds;

fn record(chosen: Option<ChosenWarps>, dual: bool) -> Encoded {
    let codec = CodecSpec::Predict(PredictParams::DEFAULT);
    let (warps, threads) = match chosen {
        None => (BLOCKS * BLOCK_WARPS, THREADS),
        Some(chosen) => (chosen.count(), chosen.block_threads(THREADS)),
    };
    let mut memory = DeviceMemory::new(AMPLE, warps, threads, if dual { 2 } else { 1 });
    memory.chosen = chosen.unwrap_or(ChosenWarps::NONE);
    let launch = Launch::new(GRID, [THREADS, 1, 1]).threads(2);
    memory.record(&rounds(), Recording { dual, ..Recording::DEFAULT }, launch);
    let mut again = memory.clone();
    let native = memory.encode_natively(codec, Schedule::Sequential);
    native.assert_same(&again.encode_by_kernels(codec));
    native
}

/// Records these warps into streamed logs with room for all events.
fn stream(chosen: Option<ChosenWarps>, dual: bool) -> Runs {
    let warps = chosen.map_or(BLOCKS * BLOCK_WARPS, |chosen| chosen.count());
    let tracks = if dual { 2 } else { 1 };
    let segments = 32 * tracks * warps;
    let room = Room { segments, entries: 64, slots: segments.next_power_of_two() };
    let mut host = Host::new(room, warps, tracks);
    host.chosen = chosen.unwrap_or(ChosenWarps::NONE);
    host.give(segments);
    let recording = Recording { dual, ..Recording::DEFAULT };
    // SAFETY: all memory has the given sizes and outlives the launch.
    let launch = unsafe { Launch::new(GRID, [THREADS, 1, 1]).threads(2).streamed(host.logs(0), recording) };
    let call = rounds();
    // SAFETY: the kernel has no arguments.
    let thread = unsafe { call.thread() };
    Simulator::new().launch(&launch, &|| thread()).expect("a correct kernel");
    host.read();
    assert!(host.lost().iter().all(|&lost| lost == 0));
    for index in 0..warps {
        let warp = chosen.map_or(Some(index), |chosen| chosen.warp(index, BLOCK_WARPS)).expect("it is there");
        let lanes = (THREADS - warp % BLOCK_WARPS * 32).min(32);
        assert_eq!(host.ended(index), u32::MAX >> (32 - lanes), "warp {warp}");
    }
    host.runs()
}

fn choices() -> [ChosenWarps; 5] {
    [
        ChosenWarps::all(BLOCKS, BLOCK_WARPS),
        ChosenWarps { first_block: 1, blocks: 4, block_step: 3, first_warp: 0, block_warps: 3 },
        ChosenWarps { first_block: 5, blocks: 1, block_step: 1, first_warp: 1, block_warps: 1 },
        ChosenWarps { first_block: 0, blocks: 12, block_step: 1, first_warp: 1, block_warps: 2 },
        ChosenWarps { first_block: 2, blocks: 2, block_step: 9, first_warp: 2, block_warps: 1 },
    ]
}

#[test]
fn chosen_warps_stream_what_they_stream_among_all() {
    for dual in [false, true] {
        let all = stream(None, dual);
        for chosen in choices() {
            let warps = BLOCKS * BLOCK_WARPS;
            let of_chosen = |((stream, lane), runs): (&(u32, u32), &Vec<_>)| {
                let (track, warp) = (stream / warps, stream % warps);
                let index = chosen.index(warp / BLOCK_WARPS, warp % BLOCK_WARPS)?;
                Some(((track * chosen.count() + index, *lane), runs.clone()))
            };
            let expected: Runs = all.iter().filter_map(of_chosen).collect();
            assert!(stream(Some(chosen), dual) == expected && !expected.is_empty(), "{chosen:?}");
        }
    }
}

#[test]
fn chosen_warps_record_what_they_record_among_all() {
    for dual in [false, true] {
        let all = record(None, dual);
        for chosen in choices() {
            let found = record(Some(chosen), dual);
            let tracks = if dual { 2 } else { 1 };
            assert_eq!(found.streams.len() as u32, tracks * chosen.count());
            for (number, stream) in (0..).zip(&found.streams) {
                let (track, index) = (number / chosen.count(), number % chosen.count());
                let warp = chosen.warp(index, BLOCK_WARPS).expect("it is one of the chosen");
                let among_all = &all.streams[(track * BLOCKS * BLOCK_WARPS + warp) as usize];
                assert_eq!(stream, among_all, "{chosen:?}, track {track}, warp {warp}");
                assert!(stream.account.attempted > 1 && stream.account.finished == 1);
            }
        }
    }
}
