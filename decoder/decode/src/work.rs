//! Limits on the work of reading a file.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::Accounts;

use crate::error::DecodeError;
use crate::file::TraceFile;

const FREE_STEPS: u64 = 1 << 28;
const STEPS_PER_BYTE: u64 = 1 << 11;
/// Steps for each byte of a payload whose repeats are not expanded, including the search for cycles.
const STEPS_PER_PAYLOAD_BYTE: u64 = 64;

/// Steps for each byte of unpacked accounts: one number of one warp.
const STEPS_PER_ACCOUNT_BYTE: u64 = 4;
const STEPS_PER_RUN: u64 = 16;
/// Steps for each byte of an unpacked source text: it is unpacked, checked and shown.
const STEPS_PER_TEXT_BYTE: u64 = 2;
const STEPS_PER_WARP: u64 = 16;
/// Steps for a row or a mark, which is analysed or written as text.
const STEPS_PER_ROW: u64 = 512;

/// Steps for a warp with a span: readers keep about 80 bytes for it, and it may have no events.
const STEPS_PER_SPAN: u64 = 128;

const FREE_OUTPUT: u64 = 1 << 30;
const OUTPUT_PER_BYTE: u64 = 1 << 15;

/// Counts the steps of all reads of a file, and the bytes of output, to stop hostile files. Chunks and warps
/// share payloads and accounts, and texts are compressed, so a few hundred bytes could take hours. The name
/// of each event may have a megabyte, so output is limited, too.
#[derive(Debug)]
pub(crate) struct Work {
    spent: AtomicU64,
    most: u64,
    written: AtomicU64,
    most_written: u64,
}

impl Work {
    pub(crate) const fn of_bytes(length: u64) -> Self {
        let most = length.saturating_mul(STEPS_PER_BYTE).saturating_add(FREE_STEPS);
        let most_written = length.saturating_mul(OUTPUT_PER_BYTE).saturating_add(FREE_OUTPUT);
        Self { spent: AtomicU64::new(0), most, written: AtomicU64::new(0), most_written }
    }

    pub(crate) const fn unlimited() -> Self {
        let (spent, written) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { spent, most: u64::MAX, written, most_written: u64::MAX }
    }

    #[cfg(test)]
    pub(crate) fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    pub(crate) fn renew(&self) {
        self.spent.store(0, Ordering::Relaxed);
        self.written.store(0, Ordering::Relaxed);
    }

    /// Counts bytes that are about to be written. Fails if the output exceeds its limit.
    pub(crate) fn write(&self, bytes: u64) -> Result<(), DecodeError> {
        let written = self.written.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if written <= self.most_written {
            return Ok(());
        }
        Err(DecodeError::TooMuchOutput { most: self.most_written })
    }

    /// Counts steps that a walk is about to take. Fails if the steps exceed their limit.
    pub(crate) fn spend(&self, steps: u64) -> Result<(), DecodeError> {
        let spent = self.spent.fetch_add(steps, Ordering::Relaxed).saturating_add(steps);
        if spent <= self.most {
            return Ok(());
        }
        Err(DecodeError::TooMuchWork { steps: spent, most: self.most })
    }

    pub(crate) fn spend_accounts(&self, accounts: &Accounts) -> Result<(), DecodeError> {
        let Accounts { runs, plain_bytes, .. } = accounts;
        // No overflow: at most 65,536 accounts.
        self.spend(*plain_bytes as u64 * STEPS_PER_ACCOUNT_BYTE + runs.len() as u64 * STEPS_PER_RUN)
    }

    pub(crate) fn spend_text(&self, bytes: usize) -> Result<(), DecodeError> {
        self.spend(bytes as u64 * STEPS_PER_TEXT_BYTE)
    }

    /// Returns the steps to visit warps with this account one by one; 0 if the visit can be skipped: the
    /// warps finished without events.
    pub(crate) fn steps_of_warps(warps: &Range<u32>, account: &WarpAccount) -> u64 {
        let is_silent = account.chunks == 0 && account.attempted == 0 && account.lost == 0;
        // No overflow: at most 2^32 warps.
        if is_silent && account.finished != 0 { 0 } else { warps.len() as u64 * STEPS_PER_WARP }
    }

    pub(crate) fn spend_spans(&self, warps: u32) -> Result<(), DecodeError> {
        self.spend(u64::from(warps).saturating_mul(STEPS_PER_SPAN))
    }

    pub(crate) fn spend_rows(&self, rows: usize) -> Result<(), DecodeError> {
        self.spend((rows as u64).saturating_mul(STEPS_PER_ROW))
    }
}

impl TraceFile {
    /// Counts steps of a view, in addition to decoding: a few bytes may represent many values that it visits.
    /// Fails if the steps exceed the limit of the file (see [`unlimited`](Self::unlimited)).
    pub fn spend_steps(&self, steps: u64) -> Result<(), DecodeError> {
        self.work.spend(steps)
    }
}

/// Returns the steps for a chunk; with `is_expanded`, one for each event.
pub(crate) fn steps(codec: CodecSpec, events: u32, payload: usize, is_expanded: bool) -> u64 {
    let events = u64::from(events);
    match codec {
        CodecSpec::Predict(_) if !is_expanded => {
            events.min((payload as u64).saturating_mul(STEPS_PER_PAYLOAD_BYTE))
        }
        _ => events,
    }
}
