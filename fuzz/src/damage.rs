//! Damages inputs: arbitrary bytes, and the sections of traces with repaired checksums.

use std::ops::Range;

use warptrace_decoder::fuzzing::repaired;
use warptrace_format::file::{PREAMBLE_BYTES, SECTION_HEADER_BYTES};

use crate::random::Random;

/// Maximum number of changes of an input.
const MAX_CHANGES: usize = 4;
/// Size of the part of a section in which fields are changed, in bytes.
const FIELDS: usize = 64;

/// Returns `seed` with some bytes changed, removed or repeated.
pub(crate) fn any_bytes(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(MAX_CHANGES) {
        let all = 0..bytes.len();
        change_bytes(&mut bytes, all, random);
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(16)).min(bytes.len());
        match random.below(6) {
            0 => {
                bytes.drain(at..end);
            }
            1 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            2 => bytes.truncate(at),
            _ => {}
        }
    }
    bytes
}

/// Returns a trace with damaged sections: changed fields, lengths, indexes, accounts and payloads; repeated,
/// removed or cut sections. Checksums are usually repaired, so that readers process the data that they cover.
pub fn damaged(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(MAX_CHANGES) {
        let sections = sections(&bytes);
        if sections.is_empty() {
            return any_bytes(&bytes, random);
        }
        let section = sections[random.below(sections.len())].clone();
        let body = section.start + SECTION_HEADER_BYTES..section.end;
        match random.below(12) {
            // Most changes keep the positions of other sections, so that the index stays valid.
            0..=3 => set_field(&mut bytes, body, random),
            4 | 5 => change_bytes(&mut bytes, body, random),
            6 => set_field(&mut bytes, section.start..section.start + SECTION_HEADER_BYTES, random),
            7 => {
                let copy = bytes[section].to_vec();
                let at = sections[random.below(sections.len())].start;
                bytes.splice(at..at, copy);
            }
            8 => {
                bytes.drain(section);
            }
            9 => cut_body(&mut bytes, &section, random),
            10 => bytes.truncate(PREAMBLE_BYTES + random.below(bytes.len().saturating_sub(PREAMBLE_BYTES))),
            _ => unfit_tag(&mut bytes, &section, random),
        }
    }
    // An eighth of the inputs keeps wrong checksums.
    if random.below(8) == 0 { bytes } else { repaired(bytes) }
}

/// Returns the sections, up to the first with an invalid length.
fn sections(bytes: &[u8]) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), PREAMBLE_BYTES);
    while let Some(length) = bytes.get(at + 8..at + 16) {
        let length = u64::from_le_bytes(length.try_into().expect("8 bytes"));
        let end =
            usize::try_from(length).ok().and_then(|length| (at + SECTION_HEADER_BYTES).checked_add(length));
        let Some(end) = end.filter(|end| *end <= bytes.len()) else { break };
        found.push(at..end);
        at = end;
    }
    found
}

/// Sets an aligned field of 1, 4 or 8 bytes near the start of `part`.
fn set_field(bytes: &mut [u8], part: Range<usize>, random: &mut Random) {
    let width = [1, 4, 8][random.below(3)];
    let places = part.len().min(FIELDS) / width;
    let at = part.start + random.below(places) * width;
    let number = random.number().to_le_bytes();
    if let Some(field) = bytes.get_mut(at..at + width).filter(|_| places > 0) {
        field.copy_from_slice(&number[..width]);
    }
}

/// Changes one to four bytes of `part`: flips a bit, sets a byte, or adds one.
fn change_bytes(bytes: &mut [u8], part: Range<usize>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = part.start + random.below(part.len());
        let Some(byte) = bytes.get_mut(at) else { return };
        *byte = match random.below(3) {
            0 => *byte ^ (1 << random.below(8)),
            1 => random.number() as u8,
            _ => byte.wrapping_add(1),
        };
    }
}

/// Removes or repeats bytes of a body. Usually updates the length in the header.
fn cut_body(bytes: &mut Vec<u8>, section: &Range<usize>, random: &mut Random) {
    let body = section.start + SECTION_HEADER_BYTES..section.end;
    let at = body.start + random.below(body.len());
    let end = (at + 1 + random.below(8)).min(body.end);
    let length = if random.below(2) == 0 {
        bytes.drain(at..end);
        body.len() - (end - at)
    } else {
        let piece = bytes[at..end].to_vec();
        bytes.splice(at..at, piece);
        body.len() + (end - at)
    };
    if random.below(4) != 0 {
        bytes[section.start + 8..section.start + 16].copy_from_slice(&(length as u64).to_le_bytes());
    }
}

/// Changes tag, version or flags of a section.
fn unfit_tag(bytes: &mut [u8], section: &Range<usize>, random: &mut Random) {
    let header = &mut bytes[section.start..section.start + SECTION_HEADER_BYTES];
    match random.below(3) {
        0 => header[random.below(4)] = b"ABCDEFGHX"[random.below(9)],
        1 => header[4] = random.below(4) as u8,
        _ => header[6] ^= 1 << random.below(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_the_same_from_the_same_number_and_of_many_kinds() {
        let seed = crate::corpus("open_file").expect("the corpus is in the tree").remove(0).1;
        assert!(sections(&seed).len() > 4);
        let all: Vec<Vec<u8>> = (0..200).map(|number| damaged(&seed, &mut Random::new(number))).collect();
        assert_eq!(all[7], damaged(&seed, &mut Random::new(7)));
        let opens = |bytes: &&Vec<u8>| warptrace_decoder::TraceFile::from_bytes((*bytes).clone()).is_ok();
        let opened = all.iter().filter(opens).count();
        // Neither all inputs are refused at opening, nor are all intact.
        assert!((40..=199).contains(&opened), "{opened} of 200 open");
    }
}
