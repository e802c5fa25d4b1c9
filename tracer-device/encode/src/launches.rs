//! The table of launches to merge, in device memory.

use core::mem::offset_of;

use warptrace_abi::log::LoggedLaunch;
use warptrace_format::Memory;
use warptrace_format::account::WarpAccount;

use crate::memory::GlobalMemory;

const LAUNCH_BYTES: u32 = size_of::<LoggedLaunch>() as u32;
const _: () = assert!(LAUNCH_BYTES == 48);
const _: () =
    assert!(offset_of!(LoggedLaunch, first_lanes) == 8 && offset_of!(LoggedLaunch, segment_entries) == 16);
const _: () =
    assert!(offset_of!(LoggedLaunch, launch) == 28 && offset_of!(LoggedLaunch, first_segments) == 40);

#[derive(Clone, Copy)]
pub(crate) struct Launches {
    pub(crate) table: u64,
    /// Number of launches, at least one.
    pub(crate) count: u32,
}

impl Launches {
    #[inline(always)]
    pub(crate) fn get(self, index: u32) -> LoggedLaunch {
        let at = self.at(index);
        let [a, b, c, d] = at.get128(0);
        let [e, f, g, h] = at.get128(16);
        let [i, j, k, l] = at.get128(32);
        LoggedLaunch::from_words([a, b, c, d, e, f, g, h, i, j, k, l])
    }

    #[inline(always)]
    pub(crate) fn of_stream(self, stream: u32) -> u32 {
        let (mut from, mut to) = (0, self.count - 1);
        while from < to {
            let middle = to - (to - from) / 2;
            let first = self.at(middle).get32(offset_of!(LoggedLaunch, first_stream) as u32);
            (from, to) = if first <= stream { (middle, to) } else { (from, middle - 1) };
        }
        from
    }

    #[inline(always)]
    pub(crate) fn stream(self, number: u32) -> StreamOf {
        let index = self.of_stream(number);
        let launch = self.get(index);
        let in_launch = number - launch.first_stream;
        // `max` shows the compiler that the divisor is not 0.
        let warps = launch.warps.max(1);
        StreamOf { launch, index, in_launch, track: in_launch / warps, warp: in_launch % warps }
    }

    #[inline(always)]
    fn at(self, index: u32) -> GlobalMemory {
        GlobalMemory::new(self.table + u64::from(index) * u64::from(LAUNCH_BYTES))
    }
}

#[derive(Clone, Copy)]
pub(crate) struct StreamOf {
    pub(crate) launch: LoggedLaunch,
    pub(crate) index: u32,
    pub(crate) in_launch: u32,
    pub(crate) track: u32,
    pub(crate) warp: u32,
}

/// Returns the address of the account of a launch's stream: `track * warps + warp`.
#[inline(always)]
pub(crate) fn account(launch: &LoggedLaunch, stream: u32) -> u64 {
    launch.accounts + u64::from(stream) * size_of::<WarpAccount>() as u64
}
