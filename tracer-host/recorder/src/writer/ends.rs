//! The accounting that ends launches.

use std::borrow::Cow;

use rayon::prelude::*;
use warptrace_format::account::WarpAccount;
use warptrace_format::file::limits::MAX_ACCOUNTS;
use warptrace_format::file::{
    Compression, FormatError, LaunchInfo, SectionKind, encode_accounts, encode_section,
};

use super::state::Launches;

/// Accounts in a section, so that several cores have work.
const ACCOUNTS_AT_ONCE: usize = 1 << 14;
const _: () = assert!(ACCOUNTS_AT_ONCE <= MAX_ACCOUNTS as usize);

/// The accounting that ends one track of a launch.
#[derive(Clone, Copy, Debug)]
pub struct TrackEnd<'a> {
    /// The launch.
    pub launch: u32,
    /// The track.
    pub track: u32,
    /// One account for each warp of the launch that was chosen, in order.
    pub accounts: &'a [WarpAccount],
}

/// The account of a warp that was not chosen, where one stands between those of others.
const NOT_CHOSEN: WarpAccount = WarpAccount { attempted: 0, recorded: 0, lost: 0, chunks: 0, finished: 1 };

/// Accounts of consecutive warps, for a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndPart<'a> {
    pub(super) launch: u32,
    pub(super) track: u32,
    pub(super) first_warp: u32,
    /// Warps of the section, chosen or not.
    pub(super) warps: u32,
    /// Accounts of those of them that were chosen.
    accounts: &'a [WarpAccount],
    info: LaunchInfo,
}

/// Cuts accounts into sections. What [`Launches::end`] will refuse makes none, or others.
pub(super) fn cut_ends<'a>(ends: &[TrackEnd<'a>], launches: &Launches) -> Vec<EndPart<'a>> {
    let known = ends.iter().filter_map(|end| launches.info(end.launch).map(|info| (end, info)));
    known.flat_map(|(end, info)| parts(end, info)).collect()
}

/// The sections of a launch's track: from the first chosen warp to the last, but not where none is chosen for
/// long.
fn parts<'a>(&TrackEnd { launch, track, accounts }: &TrackEnd<'a>, info: LaunchInfo) -> Vec<EndPart<'a>> {
    let last = info.chosen().count().checked_sub(1).and_then(|last| info.chosen_warp(last));
    let (Some(first), Some(last)) = (info.chosen_warp(0), last) else { return Vec::new() };
    let parts = (first..=last).step_by(ACCOUNTS_AT_ONCE).filter_map(|first_warp| {
        let warps = (last - first_warp + 1).min(ACCOUNTS_AT_ONCE as u32);
        let chosen = info.chosen_before(first_warp)..info.chosen_before(first_warp + warps);
        let accounts = accounts.get(chosen.start as usize..chosen.end as usize)?;
        let part = EndPart { launch, track, first_warp, warps, accounts, info };
        (!accounts.is_empty()).then_some(part)
    });
    parts.collect()
}

impl EndPart<'_> {
    /// An account for each warp of the section.
    fn all(&self) -> Cow<'_, [WarpAccount]> {
        if self.accounts.len() == self.warps as usize {
            return Cow::Borrowed(self.accounts);
        }
        let mut all = vec![NOT_CHOSEN; self.warps as usize];
        for (index, account) in (self.info.chosen_before(self.first_warp)..).zip(self.accounts) {
            if let Some(warp) = self.info.chosen_warp(index) {
                all[(warp - self.first_warp) as usize] = *account;
            }
        }
        Cow::Owned(all)
    }
}

/// The sections of these accounts.
pub(super) fn encode_ends(
    parts: &[EndPart<'_>],
    compression: Compression,
) -> Result<Vec<Vec<u8>>, FormatError> {
    let encode = |part: &EndPart<'_>| {
        let body = encode_accounts(part.launch, part.track, part.first_warp, &part.all(), compression)?;
        Ok(encode_section(SectionKind::Accounts, &body))
    };
    parts.par_iter().map(encode).collect()
}
