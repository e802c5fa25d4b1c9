//! Sites: instructions that touch memory, and places at which the source names a value. The `SITE` section.
//!
//! The body is a list in the metadata's encoding, of [`SiteInfo`]. The section is optional, and no index lists it. Sites
//! of several sections add up.

use serde::{Deserialize, Serialize};

use super::error::FormatError;
use super::limits::MAX_METADATA_BYTES;
use super::metadata::bounded;
use super::section::{SectionKind, encode_section};
use crate::data::MAX_SITE;

const SECTION: &str = "SITE";
/// The most sites that a section has.
const MAX_SITES: usize = MAX_SITE as usize;

/// What a site does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SiteKind {
    /// Reads memory.
    Load,
    /// Writes memory.
    Store,
    /// Changes memory in one step, and gives what was there.
    Atomic,
    /// Changes memory in one step.
    Reduction,
    /// Reads what an asynchronous copy writes elsewhere.
    CopyFrom,
    /// Writes what an asynchronous copy reads elsewhere.
    CopyTo,
    /// Names a value.
    Value,
}

impl SiteKind {
    /// The name, as texts and JSON have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Atomic => "atomic",
            Self::Reduction => "reduction",
            Self::CopyFrom => "copy from",
            Self::CopyTo => "copy to",
            Self::Value => "value",
        }
    }

    /// Whether its accesses are addresses.
    pub const fn is_memory(self) -> bool {
        !matches!(self, Self::Value)
    }
}

/// The state space that a site's addresses are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SiteSpace {
    /// None: it names a value.
    #[default]
    None,
    /// Any: the address says which one.
    Generic,
    /// Global memory.
    Global,
    /// Shared memory of the block.
    Shared,
    /// Shared memory of the cluster.
    Cluster,
    /// Local memory.
    Local,
}

impl SiteSpace {
    /// The name, as texts and JSON have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Generic => "generic",
            Self::Global => "global",
            Self::Shared => "shared",
            Self::Cluster => "cluster",
            Self::Local => "local",
        }
    }
}

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
        }
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
/// A body over [`MAX_METADATA_BYTES`], bytes that are no list of sites, bytes after it; a number that is 0, over
/// [`MAX_SITE`] or there twice; a site of no elements, or of more bytes than 2^16.
pub fn decode_sites(body: &[u8], at: u64) -> Result<Vec<SiteInfo>, FormatError> {
    let contents = |message: String| FormatError::Contents { section: SECTION, offset: at, message };
    if body.len() as u64 > MAX_METADATA_BYTES {
        let found = body.len();
        return Err(contents(format!("{found} bytes, over the limit of {MAX_METADATA_BYTES}")));
    }
    let (Body(sites), rest) = postcard::take_from_bytes(body)
        .map_err(|error| contents(format!("the list of sites does not decode: {error}")))?;
    if !rest.is_empty() {
        return Err(contents(format!("{} bytes follow the list", rest.len())));
    }
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
    Ok(sites)
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
        for number in [0, MAX_SITE + 1] {
            assert!(encode_sites(&[SiteInfo { number, ..sites[0].clone() }]).is_err(), "{number}");
        }
    }
}
