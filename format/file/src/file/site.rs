//! Sites: instructions that touch memory, and places at which the source names a value. The `SITE` section.
//!
//! The body is a list in the metadata's encoding, of [`SiteInfo`]. The section is optional, and no index
//! lists it. Sites of several sections add up.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::encoded::decode_body;
use super::error::FormatError;
use super::metadata::bounded;
use super::section::{SectionKind, encode_section};
use crate::data::{Derived, MAX_SITE, SiteKind, SiteSpace, ValueType};

const SECTION: &str = "SITE";
/// The most sites that a section has.
const MAX_SITES: usize = MAX_SITE as usize;

/// How the bits of a value are to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SiteNumber {
    /// Bits, or an integer without a sign.
    #[default]
    Unsigned,
    /// An integer with a sign.
    Signed,
    /// A float.
    Float,
}

impl From<ValueType> for SiteNumber {
    fn from(of: ValueType) -> Self {
        match of {
            ValueType::U32 | ValueType::U64 => Self::Unsigned,
            ValueType::I32 | ValueType::I64 => Self::Signed,
            ValueType::F32 | ValueType::F64 => Self::Float,
        }
    }
}

/// A site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteInfo {
    /// Its number, 1 to [`MAX_SITE`], unique in a file.
    pub number: u16,
    /// What it does.
    pub kind: SiteKind,
    /// Where its addresses point.
    pub space: SiteSpace,
    /// Bytes that a lane touches, or that a value has: all elements of a vector.
    pub bytes: u32,
    /// Elements of a vector, at least 1.
    pub elements: u32,
    /// How a value's bits are to be read.
    pub number_is: SiteNumber,
    /// Whether a predicate may switch lanes off.
    pub is_predicated: bool,
    /// The cache operator, as PTX has it, without dots; or nothing.
    pub cache: String,
    /// Id of the location whose events execute it; 0 if there is none.
    pub location: u16,
    /// File of the source.
    pub file: String,
    /// Line, from 1; 0 is unknown.
    pub line: u32,
    /// Column, from 1; 0 is unknown.
    pub column: u32,
    /// Name of a value; else nothing.
    pub name: String,
    /// The site from which its addresses follow, so that the file has none of its own; `None`: it has.
    pub derived: Option<Derived>,
}

impl SiteInfo {
    /// A site of this kind, whose other fields are empty.
    #[must_use]
    pub fn new(number: u16, kind: SiteKind, space: SiteSpace, bytes: u32) -> Self {
        let (cache, file, name) = (String::new(), String::new(), String::new());
        let (location, line, column, number_is) = (0, 0, 0, SiteNumber::Unsigned);
        let is_predicated = false;
        Self {
            number,
            kind,
            space,
            bytes,
            elements: 1,
            number_is,
            is_predicated,
            cache,
            location,
            file,
            line,
            column,
            name,
            derived: None,
        }
    }

    /// A site of a value of this type and name.
    #[must_use]
    pub fn of_value(number: u16, of: ValueType, name: impl Into<String>) -> Self {
        let site = Self::new(number, SiteKind::Value, SiteSpace::None, of.bytes());
        Self { number_is: of.into(), name: name.into(), ..site }
    }

    /// The same at a place of the source.
    #[must_use]
    pub fn at(self, location: u16, file: impl Into<String>, line: u32) -> Self {
        Self { location, file: file.into(), line, ..self }
    }
}

#[derive(Serialize, Deserialize)]
struct Body(#[serde(deserialize_with = "bounded::<_, _, MAX_SITES>")] Vec<SiteInfo>);

/// Makes the section, header and body, of sites.
///
/// # Errors
/// What a reader would refuse: see [`decode_sites`].
pub fn encode_sites(sites: &[SiteInfo]) -> Result<Vec<u8>, FormatError> {
    let body = postcard::to_allocvec(&Body(sites.to_vec()))
        .expect("texts and integers in a sequence of known length");
    decode_sites(&body, 0)?;
    Ok(encode_section(SectionKind::Sites, &body))
}

/// Reads the body of a section at file offset `at`.
///
/// # Errors
/// A body over [`MAX_METADATA_BYTES`](super::limits::MAX_METADATA_BYTES), bytes that are no list of sites,
/// bytes after it; a number that is 0, over [`MAX_SITE`] or there twice; a site of no elements, or of more
/// bytes than 2^16; a derived one without a root that is in the list and none itself, where one of them is a
/// value, or whose offset does not fit its addresses.
pub fn decode_sites(body: &[u8], at: u64) -> Result<Vec<SiteInfo>, FormatError> {
    let contents = |message: String| FormatError::Contents { section: SECTION, offset: at, message };
    let Body(sites) = decode_body((SECTION, "sites"), body, at)?;
    let mut seen = vec![false; MAX_SITES + 1];
    for SiteInfo { number, bytes, elements, .. } in &sites {
        match seen.get_mut(usize::from(*number)) {
            Some(seen) if *number > 0 && !*seen => *seen = true,
            _ => return Err(contents(format!("site {number} is there twice, or not 1 to {MAX_SITE}"))),
        }
        if *elements == 0 || *bytes > 1 << 16 {
            return Err(contents(format!("site {number} has {elements} elements, {bytes} bytes")));
        }
    }
    check_derived(&sites, contents)?;
    Ok(sites)
}

fn check_derived(sites: &[SiteInfo], contents: impl Fn(String) -> FormatError) -> Result<(), FormatError> {
    let is_root = |site: &SiteInfo| site.derived.is_none() && site.kind.is_memory();
    let roots: HashSet<u16> = sites.iter().filter(|site| is_root(site)).map(|site| site.number).collect();
    for SiteInfo { number, kind, derived, .. } in sites {
        let Some(Derived { root, offset, is_narrow }) = *derived else { continue };
        if !kind.is_memory() || !roots.contains(&root) {
            return Err(contents(format!(
                "site {number} follows from site {root}: both must touch memory, and the other one be recorded"
            )));
        }
        if is_narrow && i32::try_from(offset).is_err() {
            return Err(contents(format!("site {number} adds {offset} to addresses of 32 bits")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::SECTION_HEADER_BYTES;
    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_bytes_stay() {
        let site =
            SiteInfo { is_predicated: true, ..SiteInfo::new(300, SiteKind::Load, SiteSpace::Global, 8) };
        let sites = [site.at(4, "k.cu", 7), SiteInfo::new(1, SiteKind::Value, SiteSpace::None, 4)];
        let section = encode_sites(&sites).unwrap();
        let body = &section[SECTION_HEADER_BYTES..];
        assert_eq!(&section[..8], b"SITE\x01\x00\x01\x00");
        assert_eq!(body[..10], [2, 0xac, 2, 0, 2, 8, 1, 0, 1, 0]);
        assert_eq!(decode_sites(body, 0).unwrap(), sites);
        for length in 0..body.len() {
            assert!(decode_sites(&body[..length], 9).is_err(), "length {length}");
        }
        assert!(encode_sites(&[sites[0].clone(), sites[0].clone()]).is_err(), "twice");
        let derived = |root, offset, is_narrow| SiteInfo {
            derived: Some(Derived { root, offset, is_narrow }),
            ..sites[0].clone()
        };
        let table =
            |second: SiteInfo| [sites[0].clone(), sites[1].clone(), SiteInfo { number: 301, ..second }];
        let sound = table(derived(300, -64, true));
        let section = encode_sites(&sound).unwrap();
        assert_eq!(section[section.len() - 5..], [1, 0xac, 2, 127, 1], "its root, zigzag, 32 bits");
        assert_eq!(decode_sites(&section[SECTION_HEADER_BYTES..], 0).unwrap(), sound);
        assert!(encode_sites(&table(derived(300, 1 << 40, false))).is_ok());
        let of_value = SiteInfo { kind: SiteKind::Value, ..derived(300, 4, false) };
        for unsound in [
            derived(301, 4, false),
            derived(1, 4, false),
            derived(7, 4, false),
            derived(300, 1 << 31, true),
            of_value,
        ] {
            assert!(encode_sites(&table(unsound.clone())).is_err(), "{unsound:?}");
        }
        for number in [0, MAX_SITE + 1] {
            assert!(encode_sites(&[SiteInfo { number, ..sites[0].clone() }]).is_err(), "{number}");
        }
    }
}
