//! Kernels and locations added during a recording: the `MORE` section.
//!
//! The body is [`Additions`] in postcard's wire format, like the metadata, which its kernels and locations
//! continue. It precedes the launches of its kernels, which CUDA loads lazily.

use serde::{Deserialize, Serialize};

use super::encoded::decode_body;
use super::error::FormatError;
use super::known_locations::KnownLocations;
use super::limits::{MAX_KERNELS, MAX_LOCATIONS, MAX_METADATA_BYTES};
use super::metadata::{KernelInfo, LocationInfo, Metadata, bounded};
use super::metadata_error::MetadataError;
use super::section::{SectionKind, encode_section};

const SECTION: &str = "MORE";

/// Kernels and locations to add to a file's metadata.
///
/// ```
/// use warptrace_format::codec::CodecSpec;
/// use warptrace_format::file::{Additions, DeviceInfo, Growing, LocationInfo, Metadata};
/// let metadata = Metadata::new("doc", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw]).with_kernel("first", "");
/// let mut tables = Growing::new(metadata)?;
/// let locations = vec![LocationInfo::new(1, "entry", "")];
/// let additions = Additions { kernels: vec![("second", "").into()], locations };
/// tables.add(additions.clone())?;
/// assert_eq!(tables.metadata().kernels[1].name, "second");
/// assert!(tables.add(additions).is_err(), "the location is there already");
/// # Ok::<(), warptrace_format::file::MetadataError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Additions {
    /// New kernels, after the known ones.
    #[serde(deserialize_with = "bounded::<_, _, MAX_KERNELS>")]
    pub kernels: Vec<KernelInfo>,
    /// New locations, after the known ones. A parent may be a known location.
    #[serde(deserialize_with = "bounded::<_, _, MAX_LOCATIONS>")]
    pub locations: Vec<LocationInfo>,
}

impl Additions {
    /// Returns true if nothing is added.
    pub fn is_empty(&self) -> bool {
        self.kernels.is_empty() && self.locations.is_empty()
    }

    /// Encodes the section, header and body. Fails for a body over [`MAX_METADATA_BYTES`], or nothing to add.
    pub fn encode_section(&self) -> Result<Vec<u8>, MetadataError> {
        if self.is_empty() {
            return Err(MetadataError::NothingAdded);
        }
        let body = postcard::to_allocvec(self)
            .expect("additions have only strings, integers and sequences of known length");
        let found = body.len() as u64;
        if found > MAX_METADATA_BYTES {
            return Err(MetadataError::TooMany {
                what: "bytes of kernels and locations",
                found,
                limit: MAX_METADATA_BYTES,
            });
        }
        Ok(encode_section(SectionKind::Additions, &body))
    }

    /// Decodes the body of a section at file offset `at`. Rejects one over [`MAX_METADATA_BYTES`], bytes that
    /// do not decode or add nothing, and bytes after them.
    pub fn decode(body: &[u8], at: u64) -> Result<Self, FormatError> {
        let contents = |message: String| FormatError::Contents { section: SECTION, offset: at, message };
        let additions: Self = decode_body((SECTION, "kernels and locations"), body, at)?;
        if additions.is_empty() {
            return Err(contents(MetadataError::NothingAdded.to_string()));
        }
        Ok(additions)
    }
}

impl From<(&str, &str)> for KernelInfo {
    fn from((name, source_file): (&str, &str)) -> Self {
        Self { name: name.into(), source_file: source_file.into() }
    }
}

/// Metadata that grows and is valid after each step.
#[derive(Clone, Debug)]
pub struct Growing {
    metadata: Metadata,
    known: KnownLocations,
}

impl Growing {
    /// Creates tables from `metadata`. Fails like [`Metadata::check`].
    pub fn new(metadata: Metadata) -> Result<Self, MetadataError> {
        metadata.check()?;
        let mut known = KnownLocations::default();
        known.add(&metadata.locations, &metadata.tracks)?;
        Ok(Self { metadata, known })
    }

    /// Returns the current metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the final metadata.
    pub fn into_metadata(self) -> Metadata {
        self.metadata
    }

    /// Adds kernels and locations, in time that depends only on their number. Fails without a change for too
    /// many kernels, for an id that is 0, taken or too large for a codec, and for a bad parent.
    pub fn add(&mut self, additions: Additions) -> Result<(), MetadataError> {
        let kernels = self.metadata.kernels.len() + additions.kernels.len();
        if kernels > MAX_KERNELS {
            let (found, limit) = (kernels as u64, MAX_KERNELS as u64);
            return Err(MetadataError::TooMany { what: "kernels", found, limit });
        }
        self.known.add(&additions.locations, &self.metadata.tracks)?;
        self.metadata.kernels.extend(additions.kernels);
        self.metadata.locations.extend(additions.locations);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DeviceInfo, SECTION_HEADER_BYTES};
    use super::*;
    use crate::codec::CodecSpec;

    fn metadata() -> Metadata {
        Metadata::new("t", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw])
            .with_kernel("a", "")
            .with_location(7, "seven", "")
    }

    fn location(id: u16, parent: u16) -> Additions {
        let location = LocationInfo { parent, ..LocationInfo::new(id, "more", "") };
        Additions { kernels: Vec::new(), locations: vec![location] }
    }

    #[test]
    fn what_is_written_is_read() {
        let additions = Additions { kernels: vec![("b", "b.cu").into()], ..location(8, 7) };
        let section = additions.encode_section().unwrap();
        let body = &section[SECTION_HEADER_BYTES..];
        assert_eq!(Additions::decode(body, 0).unwrap(), additions);
        for length in 0..body.len() {
            assert!(Additions::decode(&body[..length], 9).is_err(), "length {length}");
        }
        assert!(Additions::decode(&[body, &[0]].concat(), 0).is_err());
        assert_eq!(Additions::default().encode_section(), Err(MetadataError::NothingAdded));
        assert!(Additions::decode(&[0, 0], 0).unwrap_err().to_string().contains("adds neither"));
    }

    #[test]
    fn what_contradicts_the_table_is_refused_and_leaves_it_as_it_was() {
        let mut tables = Growing::new(metadata()).unwrap();
        tables.add(location(9, 7)).unwrap();
        let before = tables.metadata().clone();
        for (bad, says) in [
            (location(0, 0), "begin at 1"),
            (location(7, 0), "both have the id 7"),
            (location(10, 11), "lies in location 11"),
            (location(10, 8), "lies in location 8"),
        ] {
            let error = tables.add(bad).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
            assert_eq!(tables.metadata(), &before);
        }
        let kernels = vec![("k", "").into(); MAX_KERNELS];
        let error = tables.add(Additions { kernels, locations: Vec::new() }).unwrap_err();
        assert!(matches!(error, MetadataError::TooMany { what: "kernels", .. }), "{error}");
        // The ids of rejected locations remain free.
        let both = Additions {
            locations: [location(10, 0), location(11, 12)].map(|one| one.locations).concat(),
            ..Additions::default()
        };
        tables.add(both).unwrap_err();
        tables.add(location(10, 9)).unwrap();
    }
}
