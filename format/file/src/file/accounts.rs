//! Event counts of consecutive warps of one launch and track.
//!
//! ```text
//! offset  size  field
//!      0     4  launch
//!      4     4  track
//!      8     4  first warp
//!     12     4  warps            1..=65,536, consecutive
//!     16     1  compression      0 none, 1 zstd
//!     17     3  zero
//!     20     4  header checksum  CRC-32 of the 20 bytes before
//!     24     …  accounts, compressed or not
//! ```
//!
//! The accounts are five columns with one varint per warp:
//! ```text
//! recorded     events in chunks
//! lost         events not in chunks
//! attempted    minus recorded and lost, as zigzag: 0 in a valid trace
//! chunks
//! unfinished   0 if the stream was encoded to its end after the warp's last lane left, otherwise 1
//! ```
//!
//! A column begins with a number: 0 if one value for all warps follows, 1 if the value of each warp follows.

use super::error::FormatError;
use super::fields::{Fields, push_crc, push_varint, unzigzag, zigzag};
use super::frame::{Compression, StoredAs, compress, decompress};
use super::limits::MAX_ACCOUNTS;
use crate::account::WarpAccount;

/// Size of the fixed part of an accounting section's body, in bytes.
pub const ACCOUNTS_HEADER_BYTES: usize = 24;
/// Before compression: three numbers of 64 bits, one of 32 and one of 1.
const MAX_ACCOUNT_BYTES: usize = 3 * 10 + 5 + 1;
const MAX_COLUMN_BYTES: usize = 5 * 11;
const ALL_EQUAL: u8 = 0;
const EACH: u8 = 1;

const SECTION: &str = "ACCT";

/// Fixed part of an accounting section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountsHeader {
    /// Launch number.
    pub launch: u32,
    /// Track.
    pub track: u32,
    /// Linear index of the first warp.
    pub first_warp: u32,
    /// Number of warps, 1..=[`MAX_ACCOUNTS`].
    pub warps: u32,
    /// Storage form of the accounts.
    pub stored_as: StoredAs,
}

impl AccountsHeader {
    /// Returns the linear index of the last warp.
    pub const fn last_warp(&self) -> u32 {
        self.first_warp + (self.warps - 1)
    }

    /// Decodes the fixed part of the body at file offset `at`. `body` may be longer. Rejects 0 warps.
    pub fn parse(body: &[u8], at: u64) -> Result<Self, FormatError> {
        let body = &body[..body.len().min(ACCOUNTS_HEADER_BYTES)];
        let mut fields = Fields::new(SECTION, body, at);
        let launch = fields.u32("launch")?;
        let track = fields.u32("track")?;
        let first_warp = fields.u32("first warp")?;
        let warps = fields.u32("warps")?;
        fields.limit("warps", 4, u64::from(warps), u64::from(MAX_ACCOUNTS))?;
        let compression_at = fields.offset();
        let compression = fields.u8("compression")?;
        fields.zero::<3>("reserved")?;
        fields.crc("header")?;
        let stored_as = StoredAs::from_byte(compression)
            .ok_or_else(|| fields.invalid("compression", compression_at, u64::from(compression), "0 or 1"))?;
        if warps == 0 || first_warp.checked_add(warps).is_none() {
            return Err(fields.invalid(
                "warps",
                at.saturating_add(12),
                u64::from(warps),
                format!("1..={MAX_ACCOUNTS} and no warp beyond 32 bits (first warp {first_warp})"),
            ));
        }
        Ok(Self { launch, track, first_warp, warps, stored_as })
    }
}

/// Encodes the body of an accounting section for consecutive warps. Rejects what [`decode_accounts`] rejects.
pub fn encode_accounts(
    launch: u32,
    track: u32,
    first_warp: u32,
    runs: &[AccountRun],
    compression: Compression,
) -> Result<Vec<u8>, FormatError> {
    let all: u64 = runs.iter().map(|run| u64::from(run.warps)).sum();
    let Some(warps) = u32::try_from(all).ok().filter(|warps| *warps <= MAX_ACCOUNTS) else {
        return Err(FormatError::invalid(SECTION, "warps", 12, all, format!("1..={MAX_ACCOUNTS}")));
    };
    let mut plain = Vec::with_capacity(MAX_COLUMN_BYTES);
    for column in 0..COLUMNS.len() {
        push_column(&mut plain, runs.iter().map(|run| (numbers(&run.account)[column], run.warps)));
    }
    let mut packed = Vec::new();
    let (stored_as, stored) = compress(SECTION, &plain, compression, &mut packed)?;
    let mut body = Vec::with_capacity(ACCOUNTS_HEADER_BYTES + stored.len());
    for word in [launch, track, first_warp, warps] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    body.extend_from_slice(&[stored_as.to_byte(), 0, 0, 0]);
    push_crc(&mut body, 0);
    AccountsHeader::parse(&body, 0)?;
    if let Some(run) = runs.iter().find(|run| run.account.finished > 1) {
        return Err(FormatError::invalid(SECTION, "finished", 0, run.account.finished.into(), "0 or 1"));
    }
    body.extend_from_slice(stored);
    Ok(body)
}

/// Contents of an accounting section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accounts {
    /// Fixed part.
    pub header: AccountsHeader,
    /// Accounts in order of warp. Consecutive equal accounts are one run.
    pub runs: Vec<AccountRun>,
    /// Size of the columns before compression, in bytes: the cost of reading them.
    pub plain_bytes: usize,
}

/// Consecutive warps with equal accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountRun {
    /// Number of warps, at least 1.
    pub warps: u32,
    /// Account of each of these warps.
    pub account: WarpAccount,
}

impl AccountRun {
    /// Groups the accounts of consecutive warps into runs.
    pub fn of(accounts: &[WarpAccount]) -> Vec<Self> {
        Self::joined(accounts.iter().map(|&account| Self { warps: 1, account }))
    }

    /// Joins consecutive runs with equal accounts, and drops runs without warps.
    pub fn joined(runs: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut joined: Vec<Self> = Vec::new();
        for run in runs.into_iter().filter(|run| run.warps > 0) {
            let last = joined.last_mut().filter(|last| last.account == run.account);
            match last.and_then(|last| Some((last.warps.checked_add(run.warps)?, last))) {
                Some((warps, last)) => last.warps = warps,
                None => joined.push(run),
            }
        }
        joined
    }
}

/// Decodes the body of an accounting section at file offset `at`. Rejects headers like
/// [`AccountsHeader::parse`], contents that do not decompress as announced, and numbers out of range.
pub fn decode_accounts(body: &[u8], at: u64) -> Result<Accounts, FormatError> {
    let header = AccountsHeader::parse(body, at)?;
    let stored = body.get(ACCOUNTS_HEADER_BYTES..).unwrap_or_default();
    let stored_at = at.saturating_add(ACCOUNTS_HEADER_BYTES as u64);
    let most = header.warps as usize * MAX_ACCOUNT_BYTES + MAX_COLUMN_BYTES;
    let plain = decompress(SECTION, header.stored_as, stored, most, stored_at)?;
    let mut fields = Fields::new(SECTION, &plain, stored_at);
    let mut runs = vec![AccountRun { warps: header.warps, account: WarpAccount::default() }];
    for (column, name) in COLUMNS.into_iter().enumerate() {
        runs = add_column(&mut fields, (column, name), header.warps, runs)?;
    }
    fields.end()?;
    Ok(Accounts { header, runs, plain_bytes: plain.len() })
}

fn add_column(
    fields: &mut Fields<'_>,
    (column, name): (usize, &'static str),
    mut warps: u32,
    before: Vec<AccountRun>,
) -> Result<Vec<AccountRun>, FormatError> {
    let form_at = fields.offset();
    let form = fields.u8(name)?;
    if form > EACH {
        return Err(fields.invalid(name, form_at, u64::from(form), "0 or 1 at the start of the column"));
    }
    if form == ALL_EQUAL {
        let (offset, value, mut runs) = (fields.offset(), fields.varint(name)?, before);
        if !runs.iter_mut().all(|run| set_number(&mut run.account, column, value)) {
            return Err(fields.invalid(name, offset, value, "a number in the column's range"));
        }
        return Ok(runs);
    }
    let mut runs: Vec<AccountRun> = Vec::new();
    let (mut rest, mut of_rest) =
        (before.into_iter(), AccountRun { warps: 0, account: WarpAccount::default() });
    while warps > 0 {
        let offset = fields.offset();
        let value = fields.varint(name)?;
        let mut equal = 1 + fields.skip_equal(value, warps - 1);
        warps -= equal;
        while equal > 0 {
            if of_rest.warps == 0 {
                let Some(next) = rest.next() else { break };
                of_rest = next;
            }
            let now = equal.min(of_rest.warps);
            (equal, of_rest.warps) = (equal - now, of_rest.warps - now);
            let mut account = of_rest.account;
            if !set_number(&mut account, column, value) {
                return Err(fields.invalid(name, offset, value, "a number in the column's range"));
            }
            runs.push(AccountRun { warps: now, account });
        }
    }
    Ok(AccountRun::joined(runs))
}

const COLUMNS: [&str; 5] = ["recorded", "lost", "attempted", "chunks", "unfinished"];

/// Returns the number of each column. Differences wrap, to preserve accounts from damaged memory.
fn numbers(account: &WarpAccount) -> [u64; COLUMNS.len()] {
    let WarpAccount { attempted, recorded, lost, chunks, finished } = *account;
    let more = attempted.wrapping_sub(recorded).wrapping_sub(lost) as i64;
    [recorded, lost, zigzag(more), chunks.into(), u64::from(1 - finished.min(1))]
}

/// Sets the number of a column, after the previous columns. Returns false if it is out of range.
fn set_number(account: &mut WarpAccount, column: usize, value: u64) -> bool {
    match column {
        0 => account.recorded = value,
        1 => account.lost = value,
        2 => {
            let counted = account.recorded.wrapping_add(account.lost);
            account.attempted = counted.wrapping_add(unzigzag(value) as u64);
        }
        3 => return u32::try_from(value).map(|chunks| account.chunks = chunks).is_ok(),
        _ => {
            account.finished = u32::from(value == 0);
            return value <= 1;
        }
    }
    true
}

fn push_column(plain: &mut Vec<u8>, values: impl Iterator<Item = (u64, u32)> + Clone) {
    let first = values.clone().next().map_or(0, |(value, _)| value);
    if values.clone().all(|(value, _)| value == first) {
        plain.push(ALL_EQUAL);
        push_varint(plain, first);
    } else {
        plain.push(EACH);
        values.for_each(|(value, warps)| (0..warps).for_each(|_| push_varint(plain, value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(attempted: u64) -> WarpAccount {
        WarpAccount { attempted, recorded: attempted - 1, lost: 1, chunks: 2, finished: 1 }
    }

    #[test]
    fn body_bytes_are_frozen() {
        let body = encode_accounts(1, 0, 5, &AccountRun::of(&[account(0x0102)]), Compression::None).unwrap();
        assert_eq!(body[..20], [1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(body[24..], [0, 0x81, 2, 0, 1, 0, 0, 0, 2, 0, 0]);
        let two = [account(2), WarpAccount { finished: 0, attempted: 9, ..account(2) }];
        let body = encode_accounts(1, 0, 5, &AccountRun::of(&two), Compression::None).unwrap();
        assert_eq!(body[24..], [0, 1, 0, 1, 1, 0, 14, 0, 2, 1, 0, 1]);
    }

    #[test]
    fn accounts_round_trip_with_and_without_compression() {
        let mut accounts: Vec<_> = (1..5000).map(account).collect();
        // A broken kernel may leave such accounts.
        let worst =
            WarpAccount { attempted: 0, recorded: u64::MAX, lost: u64::MAX, chunks: u32::MAX, finished: 0 };
        accounts[7] = worst;
        accounts[8] = WarpAccount { attempted: u64::MAX, recorded: 0, lost: 1, ..worst };
        for compression in [Compression::None, Compression::Zstd(3)] {
            let body = encode_accounts(4, 1, 70_000, &AccountRun::of(&accounts), compression).unwrap();
            let Accounts { header, runs, .. } = decode_accounts(&body, 0).unwrap();
            let found: Vec<_> =
                runs.iter().flat_map(|run| std::iter::repeat_n(run.account, run.warps as usize)).collect();
            assert_eq!((header.launch, header.track, header.first_warp, header.warps), (4, 1, 70_000, 4999));
            assert_eq!(header.last_warp(), 74_998);
            assert_eq!(found, accounts);
        }
    }

    #[test]
    fn equal_accounts_are_one_run() {
        let same = vec![account(9); MAX_ACCOUNTS as usize];
        let other = WarpAccount { chunks: 3, ..account(9) };
        for (accounts, expected) in [
            (&same[..], &[(MAX_ACCOUNTS, account(9))][..]),
            (&[account(9), account(9), other][..], &[(2, account(9)), (1, other)]),
        ] {
            let body = encode_accounts(0, 0, 0, &AccountRun::of(accounts), Compression::None).unwrap();
            let expected = expected.iter().map(|&(warps, account)| AccountRun { warps, account });
            assert_eq!(decode_accounts(&body, 0).unwrap().runs, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn impossible_accounts_are_refused() {
        let one = [account(1)];
        assert!(encode_accounts(0, 0, 0, &[], Compression::None).is_err());
        assert!(encode_accounts(0, 0, u32::MAX, &AccountRun::of(&one), Compression::None).is_err());
        let many = vec![account(1); MAX_ACCOUNTS as usize + 1];
        assert!(encode_accounts(0, 0, 0, &AccountRun::of(&many), Compression::None).is_err());
        let odd = WarpAccount { finished: 2, ..account(1) };
        assert!(encode_accounts(0, 0, 0, &AccountRun::of(&[odd]), Compression::None).is_err());
        let body = encode_accounts(0, 0, 0, &AccountRun::of(&one), Compression::None).unwrap();
        assert!(decode_accounts(&body[..body.len() - 1], 0).is_err());
        assert!(decode_accounts(&[&body[..], &[0]].concat(), 0).is_err());
        // A form of 2, chunks over 32 bits, and an `unfinished` of 2.
        let odd = |at: usize, bytes: &[u8]| {
            let bad = [&body[..24 + at], bytes, &body[24 + at + 1..]].concat();
            decode_accounts(&bad, 0).unwrap_err()
        };
        let field = |error| match error {
            FormatError::Invalid { field, .. } => field,
            other => panic!("{other}"),
        };
        assert_eq!(field(odd(0, &[2])), "recorded");
        assert_eq!(field(odd(7, &[0xff, 0xff, 0xff, 0xff, 0x10])), "chunks");
        assert_eq!(field(odd(9, &[2])), "unfinished");
        assert_eq!(field(odd(1, &[0xff; 11])), "recorded");
    }
}
