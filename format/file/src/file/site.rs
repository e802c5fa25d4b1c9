//! Sites: instructions that access memory, and places where the source names a value. The `SITE` section.
//!
//! The body is a list of [`SiteInfo`] in the metadata's encoding. The section is optional and not in the
//! index. The sites of several sections add up.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::encoded::decode_body;
use super::error::FormatError;
use super::metadata::bounded;
use super::section::{SectionKind, encode_section};
use crate::data::{Derived, MAX_SITE, SiteKind, SiteSpace, ValueType};

const SECTION: &str = "SITE";
const MAX_SITES: usize = MAX_SITE as usize;

/// Interpretation of a value's bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SiteNumber {
    /// Bits, or an unsigned integer.
    #[default]
    Unsigned,
    /// A signed integer.
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
    /// Number of the site, 1 to [`MAX_SITE`], unique in a file.
    pub number: u16,
    /// Operation.
    pub kind: SiteKind,
    /// State space of its addresses.
    pub space: SiteSpace,
    /// Size of a lane's access or of the value, in bytes, over all elements of a vector.
    pub bytes: u32,
    /// Number of elements of a vector, at least 1.
    pub elements: u32,
    /// Interpretation of a value's bits.
    pub number_is: SiteNumber,
    /// True if a predicate may disable lanes.
    pub is_predicated: bool,
    /// Cache operator, as in PTX, without dots; or empty.
    pub cache: String,
    /// Id of the location whose events execute the site; 0 if none.
    pub location: u16,
    /// Source file.
    pub file: String,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
    /// Name of a value; otherwise empty.
    pub name: String,
    /// Derivation from another site, instead of stored accesses; `None` if accesses are stored.
    pub derived: Option<Derived>,
}

impl SiteInfo {
    /// Creates a site. The other fields are empty.
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

    /// Creates a site of a value with this type and name.
    #[must_use]
    pub fn of_value(number: u16, of: ValueType, name: impl Into<String>) -> Self {
        let site = Self::new(number, SiteKind::Value, SiteSpace::None, of.bytes());
        Self { number_is: of.into(), name: name.into(), ..site }
    }

    /// Returns the site with this source position.
    #[must_use]
    pub fn at(self, location: u16, file: impl Into<String>, line: u32) -> Self {
        Self { location, file: file.into(), line, ..self }
    }
}

#[derive(Serialize, Deserialize)]
struct Body(#[serde(deserialize_with = "bounded::<_, _, MAX_SITES>")] Vec<SiteInfo>);

/// Encodes the section, header and body. Fails for sites that [`decode_sites`] rejects.
pub fn encode_sites(sites: &[SiteInfo]) -> Result<Vec<u8>, FormatError> {
    let body = postcard::to_allocvec(&Body(sites.to_vec()))
        .expect("texts and integers in a sequence of known length");
    decode_sites(&body, 0)?;
    Ok(encode_section(SectionKind::Sites, &body))
}

/// Decodes the body of a section at file offset `at`. Rejects a number that is 0, over [`MAX_SITE`] or used
/// twice; a site without elements or over 2^16 bytes; a derived site that is a value or whose offset does not
/// fit in its addresses; a root that is a value, derived, or not in the list.
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
