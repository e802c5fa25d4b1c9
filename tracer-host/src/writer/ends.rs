//! The accounting that ends launches.

use rayon::prelude::*;
use warptrace_format::file::limits::MAX_ACCOUNTS;
use warptrace_format::file::{Compression, FormatError, SectionKind, encode_accounts, encode_section};
use warptrace_format::pool::WarpAccount;

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
    /// One account for each warp of the launch, in order.
    pub accounts: &'a [WarpAccount],
}

/// Accounts of consecutive warps, for a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndPart<'a> {
    pub(super) launch: u32,
    pub(super) track: u32,
    pub(super) first_warp: u32,
    pub(super) accounts: &'a [WarpAccount],
}

pub(super) fn cut_ends<'a>(ends: &[TrackEnd<'a>]) -> Vec<EndPart<'a>> {
    let parts = ends.iter().flat_map(|&TrackEnd { launch, track, accounts }| {
        let first_warps = (0..).step_by(ACCOUNTS_AT_ONCE);
        let parts = first_warps.zip(accounts.chunks(ACCOUNTS_AT_ONCE));
        parts.map(move |(first_warp, accounts)| EndPart { launch, track, first_warp, accounts })
    });
    parts.collect()
}

/// The sections of these accounts.
pub(super) fn encode_ends(
    parts: &[EndPart<'_>],
    compression: Compression,
) -> Result<Vec<Vec<u8>>, FormatError> {
    let encode = |&EndPart { launch, track, first_warp, accounts }: &EndPart<'_>| {
        let body = encode_accounts(launch, track, first_warp, accounts, compression)?;
        Ok(encode_section(SectionKind::Accounts, &body))
    };
    parts.par_iter().map(encode).collect()
}
