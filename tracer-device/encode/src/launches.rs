//! The table of launches whose logs are to be merged, in the device's memory.

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

/// A table of launches.
#[derive(Clone, Copy)]
pub(crate) struct Launches {
    /// Address of the first [`LoggedLaunch`].
    pub(crate) table: u64,
    /// How many there are, at least one.
    pub(crate) count: u32,
}

impl Launches {
    /// The launch with this index.
    #[inline(always)]
    pub(crate) fn get(self, index: u32) -> LoggedLaunch {
        let at = self.at(index);
        let [a, b, c, d] = at.get128(0);
        let [e, f, g, h] = at.get128(16);
        let [i, j, k, l] = at.get128(32);
        LoggedLaunch::from_words([a, b, c, d, e, f, g, h, i, j, k, l])
    }

    /// Index of the launch of a stream.
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

    /// The stream with this number.
    #[inline(always)]
    pub(crate) fn stream(self, number: u32) -> StreamOf {
        let index = self.of_stream(number);
        let launch = self.get(index);
        let in_launch = number - launch.first_stream;
        // `max` rules the division by 0 out for the compiler.
        let warps = launch.warps.max(1);
        StreamOf { launch, index, in_launch, track: in_launch / warps, warp: in_launch % warps }
    }

    #[inline(always)]
    fn at(self, index: u32) -> GlobalMemory {
        GlobalMemory::new(self.table + u64::from(index) * u64::from(LAUNCH_BYTES))
    }
}

/// Where a stream belongs.
#[derive(Clone, Copy)]
pub(crate) struct StreamOf {
    pub(crate) launch: LoggedLaunch,
    /// Index of the launch in the table.
    pub(crate) index: u32,
    /// Number of the stream among those of its launch.
    pub(crate) in_launch: u32,
    pub(crate) track: u32,
    pub(crate) warp: u32,
}

/// Address of the account of a launch's stream: `track * warps + warp`.
#[inline(always)]
pub(crate) fn account(launch: &LoggedLaunch, stream: u32) -> u64 {
    launch.accounts + u64::from(stream) * size_of::<WarpAccount>() as u64
}
