//! The accounts that end launches.

use std::borrow::Cow;
use std::iter::repeat_n;

use rayon::prelude::*;
use warptrace_format::account::WarpAccount;
use warptrace_format::file::limits::MAX_ACCOUNTS;
use warptrace_format::file::{
    AccountRun, Compression, FormatError, LaunchInfo, SectionKind, Tie, encode_accounts, encode_section,
    encode_spans,
};
use warptrace_format::span::WarpSpan;

use super::batch::Batch;

/// Accounts per section, so that several cores have work.
const ACCOUNTS_AT_ONCE: usize = 1 << 14;
const _: () = assert!(ACCOUNTS_AT_ONCE <= MAX_ACCOUNTS as usize);

/// The accounts that end one track of a launch.
#[derive(Clone, Debug)]
pub struct TrackEnd<'a> {
    /// The launch.
    pub launch: u32,
    /// The track.
    pub track: u32,
    /// One account for each recorded warp of the launch, in order.
    pub accounts: Vec<AccountRun>,
    /// Multiprocessor and times of each recorded warp, for track 0; empty if unknown and on other tracks.
    pub spans: &'a [WarpSpan],
}

/// The account of an unrecorded warp between recorded ones.
const NOT_CHOSEN: WarpAccount = WarpAccount { attempted: 0, recorded: 0, lost: 0, chunks: 0, finished: 1 };

/// Accounts of consecutive warps, for one section.
#[derive(Clone, Debug)]
pub(super) struct EndPart<'a> {
    pub(super) launch: u32,
    pub(super) track: u32,
    pub(super) first_warp: u32,
    /// Warps of the section, recorded or not.
    pub(super) warps: u32,
    accounts: Vec<AccountRun>,
    spans: &'a [WarpSpan],
    info: LaunchInfo,
    kind: SectionKind,
}

/// Cuts accounts into sections. The result is not meaningful for ends that [`Launches::end`] refuses.
pub(super) fn cut_ends<'a>(ends: &[TrackEnd<'a>], launches: &Batch, tracks: u32) -> Vec<EndPart<'a>> {
    let known = ends.iter().filter_map(|end| launches.launch(end.launch).map(|info| (end, info)));
    let kind = |end: &TrackEnd<'_>| {
        // The data track follows the tracks of events.
        if end.track == tracks { SectionKind::DataAccounts } else { SectionKind::Accounts }
    };
    known.flat_map(|(end, info)| parts(end, info, kind(end))).collect()
}

/// Returns the sections of a track, up to the last recorded warp, without sections that have none.
fn parts<'a>(end: &TrackEnd<'a>, info: LaunchInfo, kind: SectionKind) -> Vec<EndPart<'a>> {
    let &TrackEnd { launch, track, ref accounts, spans } = end;
    let mut accounts = accounts.iter().copied();
    let mut rest = None;
    let last = info.chosen().count().checked_sub(1).and_then(|last| info.chosen_warp(last));
    let (Some(first), Some(last)) = (info.chosen_warp(0), last) else { return Vec::new() };
    let parts = (first..=last).step_by(ACCOUNTS_AT_ONCE).filter_map(|first_warp| {
        let warps = (last - first_warp + 1).min(ACCOUNTS_AT_ONCE as u32);
        let chosen = info.chosen_before(first_warp)..info.chosen_before(first_warp + warps);
        let accounts = take(&mut rest, &mut accounts, chosen.end - chosen.start);
        let spans = spans.get(chosen.start as usize..chosen.end as usize).unwrap_or_default();
        let part = EndPart { launch, track, first_warp, warps, accounts, spans, info, kind };
        (!part.accounts.is_empty()).then_some(part)
    });
    parts.collect()
}

/// Takes the accounts of up to `warps` warps from `rest` and `runs`. Leaves the remainder of a run in `rest`.
fn take(
    rest: &mut Option<AccountRun>,
    runs: &mut impl Iterator<Item = AccountRun>,
    mut warps: u32,
) -> Vec<AccountRun> {
    let mut taken = Vec::new();
    while warps > 0
        && let Some(run) = rest.take().or_else(|| runs.next())
    {
        let now = run.warps.min(warps);
        taken.push(AccountRun { warps: now, ..run });
        warps -= now;
        *rest = Some(AccountRun { warps: run.warps - now, ..run }).filter(|run| run.warps > 0);
    }
    taken
}

impl EndPart<'_> {
    fn all_accounts(&self) -> Cow<'_, [AccountRun]> {
        let chosen: u32 = self.accounts.iter().map(|run| run.warps).sum();
        if chosen == self.warps {
            return Cow::Borrowed(&self.accounts);
        }
        let each = self.accounts.iter().flat_map(|run| repeat_n(run.account, run.warps as usize));
        Cow::Owned(AccountRun::of(&self.all(&each.collect::<Vec<_>>(), NOT_CHOSEN)))
    }

    /// Returns a value for each warp of the section: from `chosen` for recorded warps, otherwise `other`.
    fn all<'b, T: Copy>(&self, chosen: &'b [T], other: T) -> Cow<'b, [T]> {
        if chosen.len() == self.warps as usize {
            return Cow::Borrowed(chosen);
        }
        let mut all = vec![other; self.warps as usize];
        for (index, value) in (self.info.chosen_before(self.first_warp)..).zip(chosen) {
            if let Some(warp) = self.info.chosen_warp(index) {
                all[(warp - self.first_warp) as usize] = *value;
            }
        }
        Cow::Owned(all)
    }
}

/// Encodes sections. Returns each with its length without the spans that may follow.
pub(super) fn encode_ends(
    parts: &[EndPart<'_>],
    compression: Compression,
) -> Result<Vec<(Vec<u8>, usize)>, FormatError> {
    let encode = |part: &EndPart<'_>| {
        let body =
            encode_accounts(part.launch, part.track, part.first_warp, &part.all_accounts(), compression)?;
        let mut section = encode_section(part.kind, &body);
        let length = section.len();
        if !part.spans.is_empty() {
            let (tie, spans) = (Tie::to_encoded(&section), part.all(part.spans, WarpSpan::default()));
            section.extend(encode_spans(tie, &spans, compression)?);
        }
        Ok((section, length))
    };
    parts.par_iter().map(encode).collect()
}
