//! Packs accounts and spans, whose fields are small for nearly all warps.
//!
//! ```text
//!  words  content
//!      4  1 if an account or a span does not fit, otherwise 0; three unused words
//!      4  for each launch, with spans: clock and timer at which its first warp began, two words each
//!      1  for each stream: its account; 0 for a stream that does not represent its class
//!      5  for each warp, with spans
//! ```

use warptrace_abi::log::LoggedLaunch;
use warptrace_device::simt;
use warptrace_format::Memory;
use warptrace_format::account::WarpAccount;
use warptrace_format::span::{PACKED_SPAN_WORDS, WarpSpan};

use crate::classes::is_first;
use crate::launches::{Launches, StreamOf, account};
use crate::memory::GlobalMemory;

/// Words before the first launch, and words of a launch.
pub const HEAD_WORDS: u32 = 4;

/// Packs the accounts of launches.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct AccountsJob {
    /// Address of the table of launches, at least one. All have the same number of tracks.
    pub table: u64,
    /// Address of the classes of streams; 0 without classes.
    pub classes: u64,
    /// Address of the packed words, a multiple of 16. The first word is 0 before.
    pub target: u64,
    /// Number of launches.
    pub launches: u32,
    /// Number of streams of all launches.
    pub streams: u32,
    /// 1 if spans follow the accounts of each launch.
    pub spans: u32,
    /// Unused; 0.
    pub unused: u32,
}

const _: () = assert!(size_of::<AccountsJob>() == 40);
const _: () = assert!(size_of::<WarpAccount>() == 32 && size_of::<WarpSpan>() == 40);

impl AccountsJob {
    /// Returns the packed words of launches with `tracks` tracks each.
    #[must_use]
    pub const fn words(&self, tracks: u32) -> u64 {
        let of_spans = self.spans as u64 * (4 * self.launches as u64 + 5 * (self.streams / tracks) as u64);
        HEAD_WORDS as u64 + of_spans + self.streams as u64
    }

    /// Returns the start of the accounts, in words.
    #[inline(always)]
    #[must_use]
    pub const fn accounts_at(&self) -> u32 {
        HEAD_WORDS + self.spans * HEAD_WORDS * self.launches
    }

    #[inline(always)]
    fn target(&self, word: u32) -> GlobalMemory {
        GlobalMemory::new(self.target + 4 * u64::from(word))
    }
}

/// Packs one stream at a time. The grid has any size along x.
#[inline(always)]
pub(crate) fn pack_accounts(job: &AccountsJob) {
    let launches = Launches { table: job.table, count: job.launches };
    let mut number = simt::block_idx()[0] * simt::block_threads() + simt::linear_thread();
    while number < job.streams {
        let stream = launches.stream(number);
        let (account, mut fits) = read_account(&stream).pack();
        let is_first = is_first(job.classes, number);
        job.target(job.accounts_at() + number).set32(0, if is_first { account } else { 0 });
        fits |= !is_first;
        if job.spans != 0 && stream.track == 0 {
            fits &= pack_span(job, &stream);
        }
        if !fits {
            job.target(0).set32(0, 1);
        }
        number = number.saturating_add(simt::grid_size()[0] * simt::block_threads());
    }
}

#[inline(always)]
fn double(memory: GlobalMemory, at: u32) -> u64 {
    let [low, high] = memory.get64(at);
    u64::from(low) | u64::from(high) << 32
}

#[inline(always)]
fn read_account(stream: &StreamOf) -> WarpAccount {
    let memory = GlobalMemory::new(account(&stream.launch, stream.in_launch));
    let [chunks, finished] = memory.get64(24);
    let [attempted, recorded, lost] = [double(memory, 0), double(memory, 8), double(memory, 16)];
    WarpAccount { attempted, recorded, lost, chunks, finished }
}

/// Returns false if the span does not fit.
#[inline(always)]
fn pack_span(job: &AccountsJob, stream: &StreamOf) -> bool {
    let LoggedLaunch { warps, tracks, first_stream, .. } = stream.launch;
    let spans = account(&stream.launch, tracks * warps);
    let memory = GlobalMemory::new(spans);
    let base = [double(memory, 0), double(memory, 8)];
    if stream.warp == 0 {
        let mut to = job.target(HEAD_WORDS + HEAD_WORDS * stream.index);
        to.set64(0, memory.get64(0));
        to.set64(8, memory.get64(8));
    }
    let memory = GlobalMemory::new(spans + 40 * u64::from(stream.warp));
    let [begin_sm, end_sm] = memory.get64(32);
    let (packed, fits) = WarpSpan {
        begin_clock: double(memory, 0),
        begin_timer: double(memory, 8),
        end_clock: double(memory, 16),
        end_timer: double(memory, 24),
        begin_sm,
        end_sm,
    }
    .pack(base);
    let warp = first_stream / tracks.max(1) + stream.warp;
    let mut to = job.target(job.accounts_at() + job.streams + PACKED_SPAN_WORDS as u32 * warp);
    for (at, word) in (0..).zip(packed) {
        to.set32(4 * at, word);
    }
    fits
}
