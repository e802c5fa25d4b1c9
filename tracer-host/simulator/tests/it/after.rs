//! Traced launches whose lanes are recorded from a visit of a location on.

use std::num::NonZeroU32;

use crate::device_memory::{AMPLE, DeviceMemory, Encoded};
use warptrace_device::simt;
use warptrace_encode::native::Schedule;
use warptrace_format::chosen::After;
use warptrace_format::codec::{CodecSpec, PredictParams};
use warptrace_macros::kernels;
use warptrace_sim::{Launch, Recording};

/// Threads of a block: a whole warp and one of six lanes.
const THREADS: u32 = 38;
const WARPS: u32 = 4;

#[kernels(device = warptrace_device, only_marked)]
mod rounds_kernel {
    use super::*;

    #[kernel]
    pub fn rounds() {
        trace!("ENTER");
        for _ in 0..simt::lane() {
            trace!("STEP");
        }
        trace!("END");
    }
}
use rounds_kernel::rounds;

fn record(after: Option<After>, dual: bool) -> Encoded {
    let codec = CodecSpec::Predict(PredictParams::DEFAULT);
    let mut memory = DeviceMemory::new(AMPLE, WARPS, THREADS, if dual { 2 } else { 1 });
    let launch = Launch::new([2, 1, 1], [THREADS, 1, 1]).threads(1);
    memory.record(&rounds(), Recording { dual, after, ..Recording::DEFAULT }, launch);
    memory.encode_natively(codec, Schedule::Sequential)
}

fn attempted(encoded: &Encoded) -> Vec<u64> {
    encoded.streams.iter().map(|stream| stream.account.attempted).collect()
}

#[test]
fn what_comes_before_the_visit_is_neither_recorded_nor_lost() {
    let after = |location, count| Some(After { location, count: NonZeroU32::new(count).expect("not 0") });
    // In a warp of n lanes, all reach ENTER and END. Each of the n - 1 steps is reached by one lane fewer
    // than the previous one.
    for dual in [false, true] {
        let twice = |of: [u64; 2]| [of, of].concat().repeat(if dual { 2 } else { 1 });
        assert_eq!(attempted(&record(None, dual)), twice([33, 7]));
        assert_eq!(attempted(&record(after(1, 1), dual)), twice([33, 7]));
        assert_eq!(attempted(&record(after(2, 1), dual)), twice([32, 6]));
        // In the small warp, only one lane reaches the fifth step.
        assert_eq!(attempted(&record(after(2, 5), dual)), twice([28, 2]));
        assert_eq!(attempted(&record(after(2, 6), dual)), twice([27, 0]));
        assert_eq!(attempted(&record(after(3, 1), dual)), twice([1, 1]));
        assert_eq!(attempted(&record(after(9, 1), dual)), twice([0, 0]));
    }
    let whole = record(None, false);
    let end = record(after(2, 4), false);
    for (stream, all) in end.streams.iter().zip(&whole.streams) {
        assert_eq!((stream.account.lost, stream.account.finished), (0, all.account.finished));
        assert!(stream.account.recorded < all.account.recorded);
    }
}
