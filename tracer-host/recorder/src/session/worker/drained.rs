//! Data of a drain on its way from the device to the file.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::{Pod, TransparentWrapper, Zeroable};
use warptrace_encode::{AccountsJob, HEAD_WORDS};
use warptrace_format::account::WarpAccount;
use warptrace_format::file::{AccountRun, EarlyEnd, LaunchInfo};
use warptrace_format::span::WarpSpan;

use crate::HostMemory;
use crate::session::classes::Representatives;

#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub(in crate::session) struct Account(WarpAccount);

impl Account {
    pub(in crate::session) fn new(account: WarpAccount) -> Self {
        Self(account)
    }

    /// Returns the events in chunks, and the number of chunks.
    pub(in crate::session) fn recorded(&self) -> (u64, u32) {
        (self.0.recorded, self.0.chunks)
    }
}

// SAFETY: `WarpAccount` has C layout with three 8-byte and two 4-byte integers, without padding.
unsafe impl Zeroable for Account {}
// SAFETY: see above.
unsafe impl Pod for Account {}
// SAFETY: the struct is `repr(transparent)`.
unsafe impl TransparentWrapper<WarpAccount> for Account {}

#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub(in crate::session) struct Span(WarpSpan);

// SAFETY: `WarpSpan` has C layout with four 8-byte and two 4-byte integers, without padding.
unsafe impl Zeroable for Span {}
// SAFETY: see above.
unsafe impl Pod for Span {}
// SAFETY: the struct is `repr(transparent)`.
unsafe impl TransparentWrapper<WarpSpan> for Span {}

impl Span {
    pub(in crate::session) fn warps(spans: &mut [Self]) -> &mut [WarpSpan] {
        Self::peel_slice_mut(spans)
    }
}

/// Appends the values in `bytes`, whose length is a multiple of the value's size.
pub(in crate::session) fn append<T: Pod>(to: &mut Vec<T>, bytes: &[u8]) {
    let from = to.len();
    to.resize(from + bytes.len() / size_of::<T>(), T::zeroed());
    bytemuck::cast_slice_mut(&mut to[from..]).copy_from_slice(bytes);
}

/// Data copied from the device.
#[derive(Debug, Default)]
pub(in crate::session) struct Drained {
    /// Launches that begin, recorded or not.
    pub(in crate::session) begin: Vec<LaunchInfo>,
    /// Packed chunks of launches that have begun.
    pub(in crate::session) packed: HostMemory<u8>,
    pub(in crate::session) classes: Option<Arc<Representatives>>,
    pub(in crate::session) end: Vec<LaunchInfo>,
    /// Where accounts and spans of ended launches are. If no launch ends, their content is undefined.
    pub(in crate::session) form: Form,
    /// Accounts by launch, track and recorded warp. With classes, only accounts of encoded streams are valid.
    pub(in crate::session) accounts: Vec<Account>,
    /// Spans of their warps, if recorded, by launch and recorded warp.
    pub(in crate::session) spans: Vec<Span>,
    /// Accounts and spans as on the device.
    pub(in crate::session) tables: Vec<u64>,
    /// Accounts and spans as the device packs them.
    pub(in crate::session) words: HostMemory<u32>,
    /// A launch that did not complete, and may not have begun before. Boxed because it is rare.
    pub(in crate::session) early_end: Option<Box<(LaunchInfo, EarlyEnd)>>,
}

/// Form of the accounts of a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::session) enum Form {
    /// In `accounts` and `spans`.
    #[default]
    Separate,
    /// In `tables` as on the device, by launch; spans follow the accounts of each launch if true.
    Tables(bool),
    /// In `words`, as [`AccountsJob`] packs them; with spans if true.
    Packed(bool),
}

/// Accounts by launch, track and recorded warp.
#[derive(Clone, Copy)]
pub(super) enum Accounts<'a> {
    Each(&'a [WarpAccount]),
    Packed(&'a [u32]),
}

impl Accounts<'_> {
    pub(super) fn get(self, stream: usize) -> WarpAccount {
        let found = match self {
            Self::Each(accounts) => accounts.get(stream).copied(),
            Self::Packed(words) => words.get(stream).map(|word| WarpAccount::unpack(*word)),
        };
        found.unwrap_or_default()
    }

    pub(super) fn runs(self, streams: Range<usize>) -> Vec<AccountRun> {
        match self {
            Self::Each(accounts) => AccountRun::of(accounts.get(streams).unwrap_or_default()),
            Self::Packed(words) => {
                let equal = words.get(streams).unwrap_or_default().chunk_by(|a, b| a == b);
                let run = |run: &[u32]| AccountRun {
                    warps: run.len() as u32,
                    account: WarpAccount::unpack(run[0]),
                };
                equal.map(run).collect()
            }
        }
    }
}

impl Drained {
    pub(super) fn emptied(mut self) -> Self {
        self.packed.clear();
        self.words.clear();
        self.spans.clear();
        let Self { packed, accounts, spans, tables, words, .. } = self;
        Self { packed, accounts, spans, tables, words, ..Self::default() }
    }

    /// Returns the approximate size in host memory.
    pub(super) fn bytes(&self) -> usize {
        let Self { begin, packed, classes, end, accounts, spans, tables, words, .. } = self;
        let launches = size_of_val(&begin[..]) + size_of_val(&end[..]);
        let classes = classes.as_ref().map_or(0, |classes| classes.bytes());
        let accounts = match self.form {
            Form::Separate => size_of_val(&accounts[..]) + size_of_val(&spans[..]),
            // They are separated later.
            Form::Tables(_) => 2 * size_of_val(&tables[..]),
            Form::Packed(false) => size_of_val(&words[..]),
            Form::Packed(true) => 3 * size_of_val(&words[..]),
        };
        launches + size_of_val(&packed[..]) + classes + accounts
    }

    /// Separates accounts and spans, and unpacks spans. Packed accounts stay packed.
    pub(super) fn separate(&mut self, tracks: u32) {
        match self.form {
            Form::Separate | Form::Packed(false) => {}
            Form::Tables(has_spans) => {
                self.accounts.clear();
                let mut rest = &self.tables[..];
                let mut take = |bytes: usize| {
                    let (taken, after) = rest.split_at_checked(bytes / size_of::<u64>()).unwrap_or_default();
                    rest = after;
                    taken
                };
                for info in &self.end {
                    let warps = info.chosen().count() as usize;
                    let accounts = take(size_of::<Account>() * warps * tracks as usize);
                    self.accounts.extend_from_slice(bytemuck::cast_slice(accounts));
                    let spans = take(size_of::<Span>() * warps * usize::from(has_spans));
                    self.spans.extend_from_slice(bytemuck::cast_slice(spans));
                }
            }
            Form::Packed(true) => {
                let job = self.job(tracks);
                let (heads, rest) =
                    self.words.split_at_checked(job.accounts_at() as usize).unwrap_or_default();
                let (heads, _) = heads.as_chunks::<{ HEAD_WORDS as usize }>();
                let (mut spans, _) = rest.get(job.streams as usize..).unwrap_or_default().as_chunks();
                // The first chunk has no clocks.
                for (info, [a, b, c, d]) in self.end.iter().zip(heads.iter().skip(1)) {
                    let double = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
                    let base = [double(*a, *b), double(*c, *d)];
                    let warps = info.chosen().count() as usize;
                    let (now, after) = spans.split_at_checked(warps).unwrap_or_default();
                    self.spans.extend(now.iter().map(|words| Span(WarpSpan::unpack(*words, base))));
                    spans = after;
                }
            }
        }
    }

    /// Returns the sizes of packed accounts.
    fn job(&self, tracks: u32) -> AccountsJob {
        let streams = self.end.iter().map(|info| tracks * info.chosen().count()).sum();
        let spans = u32::from(self.form == Form::Packed(true));
        AccountsJob { launches: self.end.len() as u32, streams, spans, ..AccountsJob::default() }
    }

    pub(super) fn accounts(&self, tracks: u32) -> Accounts<'_> {
        match self.form {
            Form::Packed(_) => {
                let job = self.job(tracks);
                let from = job.accounts_at() as usize;
                Accounts::Packed(self.words.get(from..from + job.streams as usize).unwrap_or_default())
            }
            _ => Accounts::Each(Account::peel_slice(&self.accounts)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_accounts_and_spans_are_those_of_their_launches() {
        let end = [(3, 2), (5, 1)].map(|(number, blocks)| {
            LaunchInfo::new(number, 0, [blocks, 1, 1], [64, 1, 1], 0).expect("a launch")
        });
        let clocks = [[7 << 33, 1 << 40], [9, 2 << 40]];
        let span = |launch: usize, warp: u64| WarpSpan {
            begin_clock: clocks[launch][0] + warp,
            begin_timer: clocks[launch][1] + 2 * warp,
            end_clock: clocks[launch][0] + 100 + warp,
            end_timer: clocks[launch][1] + 200,
            begin_sm: 1 + warp as u32,
            end_sm: 2,
        };
        let spans: Vec<_> =
            [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)].map(|(of, warp)| (of, span(of, warp))).into();
        let mut words = vec![0; 4];
        words.extend(clocks.iter().flatten().flat_map(|it| [*it as u32, (it >> 32) as u32]));
        // Two tracks of four and of two warps.
        words.extend(1..=12);
        words.extend(spans.iter().flat_map(|(of, span)| span.pack(clocks[*of]).0));
        let mut drained = Drained {
            end: end.to_vec(),
            form: Form::Packed(true),
            words: words.into(),
            ..Drained::default()
        };
        drained.separate(2);
        assert_eq!(Span::peel_slice(&drained.spans), spans.iter().map(|(_, span)| *span).collect::<Vec<_>>());
        let accounts = drained.accounts(2);
        assert_eq!(accounts.runs(0..12).len(), 12);
        assert_eq!((accounts.get(0).recorded, accounts.get(11).recorded), (1, 12));
        // Memory that does not fit the launches has no accounts.
        drained.words.vec().truncate(9);
        drained.spans.clear();
        drained.separate(2);
        assert!(drained.spans.is_empty() && drained.accounts(2).runs(0..12).is_empty());
    }
}
