//! Places and times of warps: the `SPAN` section, directly after an accounting section of track 0.
//!
//! ```text
//! offset  size  field
//!      0     4  section before, the checksum of the accounting section's body; missing in version 1
//!      4     4  warps         as many as the accounting section has
//!      8     4  plain bytes   of the contents before compression, at most 48 for each warp and 1024
//!     12     1  compression   0 none, 1 zstd
//!     13     3  zero
//!     16     …  contents, compressed or not: consecutive columns
//! ```
//!
//! ```text
//! state        for each warp, 32 bits: 0 unknown; 1 began; 2 also ended; 3 ended on another multiprocessor
//! sm           for each warp that began, 32 bits: the multiprocessor at the begin
//! begin        for each of these, 64 bits: the global timer, minus the previous one (0 if none), zigzag
//! clock        for each of these, 64 bits: the clock, minus the clock of the previous warp that began on the
//!              same multiprocessor (0 if none), zigzag
//! nanoseconds  for each warp that ended, 64 bits: the global timer at the end, minus the begin, zigzag
//! cycles       for each of these, 64 bits: the clock at the end, minus the begin, zigzag
//! moved        for each warp that ended elsewhere, 32 bits: the multiprocessor at the end
//! ```
//!
//! Differences are modulo 2^64.

use std::collections::HashMap;

use warptrace_columns::Element;

use super::contents::{Contents, encode_contents, put};
use super::error::FormatError;
use super::fields::Fields;
use super::frame::Compression;
use super::limits::MAX_ACCOUNTS;
use super::section::SectionKind;
use super::tie::Tie;
use crate::span::WarpSpan;

const SECTION: &str = "SPAN";
const WARP_BYTES: u32 = 48;
const COLUMN_BYTES: u32 = 1024;
const BEGAN: u32 = 1;
const ENDED: u32 = 2;
const MOVED: u32 = 3;

fn most_bytes(warps: u32) -> u32 {
    warps.saturating_mul(WARP_BYTES).saturating_add(COLUMN_BYTES)
}

/// The clock of the last warp that began on each multiprocessor, or 0.
#[derive(Default)]
struct LastClocks {
    few: Vec<u64>,
    /// From [`FEW`](Self::FEW) on. Damaged memory or files may have any number.
    others: HashMap<u32, u64>,
}

impl LastClocks {
    const FEW: usize = 1 << 10;

    fn of(&mut self, sm: u32) -> &mut u64 {
        if sm as usize >= Self::FEW {
            return self.others.entry(sm).or_default();
        }
        self.few.resize(self.few.len().max(sm as usize + 1), 0);
        &mut self.few[sm as usize]
    }
}

/// Encodes the section, header and body, for at most [`MAX_ACCOUNTS`] warps. `tie` identifies their accounts.
pub fn encode_spans(tie: Tie, spans: &[WarpSpan], compression: Compression) -> Result<Vec<u8>, FormatError> {
    let warps = u32::try_from(spans.len()).unwrap_or(u32::MAX);
    if warps > MAX_ACCOUNTS {
        return Err(FormatError::too_large(SECTION, "warps", 0, spans.len() as u64, MAX_ACCOUNTS));
    }
    let [mut states, mut sms] = [(); 2].map(|()| Vec::with_capacity(spans.len()));
    let [mut begins, mut clocks, mut nanoseconds, mut cycles] =
        [(); 4].map(|()| Vec::<u64>::with_capacity(spans.len()));
    let (mut moved, mut last_begin, mut last_clocks) = (Vec::new(), 0, LastClocks::default());
    for span in spans {
        let Some(sm) = span.sm() else {
            states.push(0);
            continue;
        };
        sms.push(sm);
        begins.push(span.begin_timer.wrapping_sub(last_begin).zigzag());
        last_begin = span.begin_timer;
        let last = last_clocks.of(sm);
        clocks.push(span.begin_clock.wrapping_sub(*last).zigzag());
        *last = span.begin_clock;
        if !span.has_ended() {
            states.push(BEGAN);
            continue;
        }
        nanoseconds.push(span.end_timer.wrapping_sub(span.begin_timer).zigzag());
        cycles.push(span.end_clock.wrapping_sub(span.begin_clock).zigzag());
        if span.has_moved() {
            moved.push(span.end_sm - 1);
        }
        states.push(if span.has_moved() { MOVED } else { ENDED });
    }
    let mut plain = Vec::new();
    put(&states, 0, compression, &mut plain);
    put(&sms, 0, compression, &mut plain);
    for column in [begins, clocks, nanoseconds, cycles] {
        put(&column, 0, compression, &mut plain);
    }
    put(&moved, 0, compression, &mut plain);
    let fixed = [tie.encode(), warps.to_le_bytes()];
    encode_contents(SectionKind::Spans, fixed.as_flattened(), &plain, compression)
}

/// Decodes the body of a section of this version at file offset `at`, after accounts of `warps` warps.
/// Rejects the spans of other accounts, contents that do not decompress as announced, and columns that are
/// invalid or contradict each other or the accounts.
pub fn decode_spans(
    (version, body): (u16, &[u8]),
    at: u64,
    tie: Tie,
    warps: u32,
) -> Result<Vec<WarpSpan>, FormatError> {
    let mut fields = Fields::new(SECTION, body, at);
    tie.check(&mut fields, version, "the checksum of the ACCT section before it, to which it belongs")?;
    let at = fields.offset();
    let found = fields.u32("warps")?;
    if found != warps || warps > MAX_ACCOUNTS {
        return Err(fields.invalid(
            "warps",
            at,
            found.into(),
            "the number of warps of the ACCT section before it",
        ));
    }
    let contents = Contents::read(SECTION, fields, most_bytes(warps))?;
    let mut columns = contents.columns();
    let states: Vec<u32> = columns.next("state", warps as usize..=warps as usize)?;
    if let Some(state) = states.iter().find(|state| **state > MOVED) {
        return Err(contents.wrong(format!("a warp has the state {state}, expected 0 to {MOVED}")));
    }
    let count = |least: u32| states.iter().filter(|state| **state >= least).count();
    let [began, ended, elsewhere] = [BEGAN, ENDED, MOVED].map(count);
    let sms: Vec<u32> = columns.next("sm", began..=began)?;
    let begins: Vec<u64> = columns.next("begin", began..=began)?;
    let clocks: Vec<u64> = columns.next("clock", began..=began)?;
    let nanoseconds: Vec<u64> = columns.next("nanoseconds", ended..=ended)?;
    let cycles: Vec<u64> = columns.next("cycles", ended..=ended)?;
    let moved: Vec<u32> = columns.next("moved", elsewhere..=elsewhere)?;
    columns.end()?;
    if sms.iter().chain(&moved).any(|sm| *sm == u32::MAX) {
        return Err(contents.wrong(format!("a warp ran on multiprocessor {}", u32::MAX)));
    }
    let mut moved_from = sms.iter().zip(states.iter().filter(|state| **state != 0));
    let mut moved_to = moved.iter();
    if moved_from.any(|(sm, state)| *state == MOVED && moved_to.next() == Some(sm)) {
        return Err(contents.wrong("a warp ended on another multiprocessor, which is the same".to_owned()));
    }
    let mut began = sms.into_iter().zip(begins.into_iter().zip(clocks));
    let mut ended = nanoseconds.into_iter().zip(cycles);
    let mut moved = moved.into_iter();
    let (mut last_begin, mut last_clocks) = (0u64, LastClocks::default());
    let span = |state: u32| {
        let mut span = WarpSpan::default();
        if state == 0 {
            return span;
        }
        let (sm, (begin, clock)) = began.next().unwrap_or_default();
        span.begin_sm = sm + 1;
        span.begin_timer = last_begin.wrapping_add(begin.unzigzag());
        last_begin = span.begin_timer;
        let last = last_clocks.of(sm);
        span.begin_clock = last.wrapping_add(clock.unzigzag());
        *last = span.begin_clock;
        if state >= ENDED {
            let (nanoseconds, cycles) = ended.next().unwrap_or_default();
            span.end_timer = span.begin_timer.wrapping_add(nanoseconds.unzigzag());
            span.end_clock = span.begin_clock.wrapping_add(cycles.unzigzag());
            span.end_sm = if state == MOVED { moved.next().unwrap_or_default() + 1 } else { span.begin_sm };
        }
        span
    };
    Ok(states.into_iter().map(span).collect())
}

#[cfg(test)]
mod tests {
    use super::super::{SECTION_HEADER_BYTES, encode_section};
    use super::*;

    fn tie(body: &[u8]) -> Tie {
        Tie::to_encoded(&encode_section(SectionKind::Accounts, body))
    }

    fn decode(body: &[u8], warps: u32) -> Result<Vec<WarpSpan>, FormatError> {
        decode_spans((2, body), 7, tie(b"a"), warps)
    }

    fn spans() -> Vec<WarpSpan> {
        let warp = |warp: u64| {
            let sm = (warp % 5) as u32 + 1;
            let clock = (u64::from(sm) << 40).wrapping_add(1000 * warp).wrapping_sub(7 << 40);
            WarpSpan {
                begin_clock: clock,
                begin_timer: (1 << 60) + 32 * warp,
                end_clock: clock.wrapping_add(123 + warp % 7),
                end_timer: (1 << 60) + 32 * warp + 64,
                begin_sm: sm,
                end_sm: sm,
            }
        };
        let mut spans: Vec<_> = (0..300).map(warp).collect();
        spans[7] = WarpSpan::default();
        spans[8] = WarpSpan { end_sm: 0, end_clock: 0, end_timer: 0, ..spans[8] };
        spans[20].end_sm = 1;
        spans[21] = WarpSpan { end_timer: 3, end_clock: 5, ..spans[21] };
        spans
    }

    #[test]
    fn spans_come_back() {
        let all = spans();
        for spans in [&all[..], &all[..8], &all[7..8], &all[..1]] {
            for compression in [Compression::None, Compression::Suited, Compression::Zstd(5)] {
                let section = encode_spans(tie(b"a"), spans, compression).unwrap();
                let body = &section[SECTION_HEADER_BYTES..];
                let warps = spans.len() as u32;
                assert_eq!(decode(body, warps).unwrap(), spans);
                assert!(decode(body, warps + 1).is_err(), "more accounts");
                assert!(decode_spans((2, body), 0, tie(b"b"), warps).is_err(), "other accounts");
                // Version 1 does not identify the accounts.
                assert_eq!(decode_spans((1, &body[4..]), 0, tie(b"b"), warps).unwrap(), spans);
            }
        }
        assert!(encode_spans(tie(b"a"), &all, Compression::Suited).unwrap().len() < 5 * all.len());
    }

    #[test]
    fn damaged_sections_are_refused_or_are_spans() {
        let section = encode_spans(tie(b"a"), &spans(), Compression::None).unwrap();
        let body = &section[SECTION_HEADER_BYTES..];
        for length in 0..body.len() {
            assert!(decode(&body[..length], 300).is_err(), "length {length}");
        }
        let mut refused = 0;
        for byte in 0..body.len() {
            for bit in 0..8 {
                let mut damaged = body.to_vec();
                damaged[byte] ^= 1 << bit;
                match decode(&damaged, 300) {
                    Ok(spans) => assert_eq!(spans.len(), 300),
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(refused > 100, "{refused}");
    }

    #[test]
    fn the_section_is_as_it_was() {
        let one =
            WarpSpan { begin_clock: 5, begin_timer: 9, end_clock: 7, end_timer: 10, begin_sm: 3, end_sm: 3 };
        let section = encode_spans(tie(b"a"), &[WarpSpan::default(), one], Compression::None).unwrap();
        assert_eq!(&section[..8], b"SPAN\x02\x00\x01\x00");
        let fixed = [crc32fast::hash(b"a"), 2].map(u32::to_le_bytes);
        assert_eq!(&section[SECTION_HEADER_BYTES..][..8], fixed.concat());
    }
}
