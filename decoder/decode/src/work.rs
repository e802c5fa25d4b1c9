//! How much work a file may ask of a reader.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::Accounts;

use crate::error::DecodeError;
use crate::file::TraceFile;

/// Steps that every file may take.
const FREE_STEPS: u64 = 1 << 28;
/// Further steps for each byte of the file.
const STEPS_PER_BYTE: u64 = 1 << 11;
/// Steps for each byte of a payload whose repeats are not expanded: a miss takes some bits, and the search for
/// a cycle some more steps.
const STEPS_PER_PAYLOAD_BYTE: u64 = 64;

/// Steps for each byte of accounts before compression: a number of one warp.
const STEPS_PER_ACCOUNT_BYTE: u64 = 4;
/// Steps for warps with one account, which are looked at together.
const STEPS_PER_RUN: u64 = 16;
/// Steps for each byte of a text that the file keeps, before compression: it is unpacked, checked and shown.
const STEPS_PER_TEXT_BYTE: u64 = 2;
/// Steps for a warp whose account is looked at for itself,
const STEPS_PER_WARP: u64 = 16;
/// and for a row or a mark of its own, which is analysed, or written as text.
const STEPS_PER_ROW: u64 = 512;

/// Steps for a warp of which it is said where and when it ran: readers keep some 80 bytes of it, and it may
/// have no event.
const STEPS_PER_SPAN: u64 = 128;

/// Bytes that every file may have written out.
const FREE_OUTPUT: u64 = 1 << 30;
/// Further bytes of output for each byte of the file.
const OUTPUT_PER_BYTE: u64 = 1 << 15;

/// Counts the steps that chunks, accounts and texts cost, over all walks through a file.
///
/// Chunks share payloads, a few bytes can announce very many events, a section of accounts is of up to 65,536 warps, and
/// texts are packed, so a file of some hundred bytes can ask for hours. Counts bytes of output, too: each of these events
/// may have a name of a megabyte.
#[derive(Debug)]
pub(crate) struct Work {
    spent: AtomicU64,
    most: u64,
    written: AtomicU64,
    most_written: u64,
}

impl Work {
    /// What a file of this length may cost.
    pub(crate) const fn of_bytes(length: u64) -> Self {
        let most = length.saturating_mul(STEPS_PER_BYTE).saturating_add(FREE_STEPS);
        let most_written = length.saturating_mul(OUTPUT_PER_BYTE).saturating_add(FREE_OUTPUT);
        Self { spent: AtomicU64::new(0), most, written: AtomicU64::new(0), most_written }
    }

    pub(crate) const fn unlimited() -> Self {
        let (spent, written) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { spent, most: u64::MAX, written, most_written: u64::MAX }
    }

    /// Steps so far.
    #[cfg(test)]
    pub(crate) fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    /// Forgets the steps and the output so far.
    pub(crate) fn renew(&self) {
        self.spent.store(0, Ordering::Relaxed);
        self.written.store(0, Ordering::Relaxed);
    }

    /// Takes bytes that are about to be written.
    ///
    /// # Errors
    /// If the file has had its share.
    pub(crate) fn write(&self, bytes: u64) -> Result<(), DecodeError> {
        let written = self.written.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if written <= self.most_written {
            return Ok(());
        }
        Err(DecodeError::TooMuchOutput { most: self.most_written })
    }

    /// Takes steps that a walk is about to make.
    ///
    /// # Errors
    /// If the file has had its share.
    pub(crate) fn spend(&self, steps: u64) -> Result<(), DecodeError> {
        let spent = self.spent.fetch_add(steps, Ordering::Relaxed).saturating_add(steps);
        if spent <= self.most {
            return Ok(());
        }
        Err(DecodeError::TooMuchWork { steps: spent, most: self.most })
    }

    /// Takes the steps of going through a section's accounts.
    ///
    /// # Errors
    /// As [`spend`](Self::spend).
    pub(crate) fn spend_accounts(&self, accounts: &Accounts) -> Result<(), DecodeError> {
        let Accounts { runs, plain_bytes, .. } = accounts;
        // No more than 65,536 accounts.
        self.spend(*plain_bytes as u64 * STEPS_PER_ACCOUNT_BYTE + runs.len() as u64 * STEPS_PER_RUN)
    }

    /// Takes the steps of unpacking a text of `bytes` bytes.
    ///
    /// # Errors
    /// As [`spend`](Self::spend).
    pub(crate) fn spend_text(&self, bytes: usize) -> Result<(), DecodeError> {
        self.spend(bytes as u64 * STEPS_PER_TEXT_BYTE)
    }

    /// Takes the steps of looking at warps with this account one by one. Returns whether there is something to see:
    /// events, or no end.
    ///
    /// # Errors
    /// As [`spend`](Self::spend).
    pub(crate) fn spend_warps(&self, warps: &Range<u32>, account: &WarpAccount) -> Result<bool, DecodeError> {
        let is_silent = account.chunks == 0 && account.attempted == 0 && account.lost == 0;
        if is_silent && account.finished != 0 {
            return Ok(false);
        }
        self.spend((warps.len() as u64).saturating_mul(STEPS_PER_WARP))?;
        Ok(true)
    }

    /// Takes the steps of warps of which it is said where and when they ran.
    ///
    /// # Errors
    /// As [`spend`](Self::spend).
    pub(crate) fn spend_spans(&self, warps: u32) -> Result<(), DecodeError> {
        self.spend(u64::from(warps).saturating_mul(STEPS_PER_SPAN))
    }

    /// Takes the steps of rows or marks.
    ///
    /// # Errors
    /// As [`spend`](Self::spend).
    pub(crate) fn spend_rows(&self, rows: usize) -> Result<(), DecodeError> {
        self.spend((rows as u64).saturating_mul(STEPS_PER_ROW))
    }
}

impl TraceFile {
    /// Takes steps that a view makes for what the file says, beside those that decoding takes: a few bytes
    /// may stand for many values that are looked at one by one.
    ///
    /// # Errors
    /// If the file has had its share (see [`unlimited`](Self::unlimited)).
    pub fn spend_steps(&self, steps: u64) -> Result<(), DecodeError> {
        self.work.spend(steps)
    }
}

/// The steps that a chunk costs: all of its events, if they are wanted one by one.
pub(crate) fn steps(codec: CodecSpec, events: u32, payload: usize, is_expanded: bool) -> u64 {
    let events = u64::from(events);
    match codec {
        CodecSpec::Predict(_) if !is_expanded => {
            events.min((payload as u64).saturating_mul(STEPS_PER_PAYLOAD_BYTE))
        }
        _ => events,
    }
}
