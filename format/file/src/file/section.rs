//! Section headers.
//!
//! ```text
//! offset  size  field
//!      0     4  tag              four ASCII letters
//!      4     2  version          of this kind of section
//!      6     2  flags            bit 0: optional; readers reject other bits
//!      8     8  length           bytes of the body
//!     16     4  body checksum    CRC-32 of the body
//!     20     4  header checksum  CRC-32 of the 20 bytes before
//! ```

use std::fmt;

use super::data::TILES_VERSION;
use super::error::FormatError;
use super::fields::{Fields, push_crc};
use super::frame::RUNS_VERSION;
use super::launch::CHOSEN_VERSION;
use super::limits::MAX_SECTION_BYTES;
use super::tie::TIED_VERSION;

/// Size of a section's header, in bytes.
pub const SECTION_HEADER_BYTES: usize = 24;
/// Flag: a reader that does not support the tag or the version may skip the section.
pub const FLAG_OPTIONAL: u16 = 1;

/// Four letters that identify the kind of a section.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub [u8; 4]);

impl fmt::Display for Tag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{}\"", self.0.escape_ascii())
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Declares the section kinds: documentation, tag, readable versions, and the flags to write.
macro_rules! section_kinds {
    ($($(#[$doc:meta])* $kind:ident = $tag:literal, $versions:expr, $flags:expr;)*) => {
        /// Kind of a section.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum SectionKind {
            $($(#[$doc])* $kind,)*
        }

        impl SectionKind {
            /// All kinds, in file order.
            pub const ALL: [Self; [$($tag),*].len()] = [$(Self::$kind),*];

            /// Returns the tag as text.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $tag,)*
                }
            }

            /// Returns the section versions that this build reads.
            pub const fn readable_versions(self) -> &'static [u16] {
                match self {
                    $(Self::$kind => &$versions,)*
                }
            }

            const fn flags(self) -> u16 {
                match self {
                    $(Self::$kind => $flags,)*
                }
            }
        }
    };
}

section_kinds! {
    /// Device, kernels, codecs, locations and settings of the recording.
    Metadata = "META", [1], 0;
    /// Rank in a job, host and device.
    Origin = "ORIG", [1], FLAG_OPTIONAL;
    /// Kernels and locations added during the recording.
    Additions = "MORE", [1], 0;
    /// A source text that locations refer to.
    Text = "TEXT", [1], FLAG_OPTIONAL;
    /// Instructions of locations in the compiled code.
    Code = "CODE", [1], FLAG_OPTIONAL;
    /// Barriers and copies of waits in the compiled code.
    Waits = "WAIT", [1], FLAG_OPTIONAL;
    /// Labels of launches.
    Labels = "LABL", [1], FLAG_OPTIONAL;
    /// Call stacks of the threads that made launches.
    Stacks = "STCK", [1], FLAG_OPTIONAL;
    /// Unrecorded launches, and notes on recorded ones.
    Unrecorded = "UNTR", [1], FLAG_OPTIONAL;
    /// One kernel launch.
    Launch = "LNCH", [1, CHOSEN_VERSION], 0;
    /// Chunks of one launch and track.
    Frame = "FRAM", [1, RUNS_VERSION], 0;
    /// Times of the runs in the previous frame.
    Times = "TIME", [1, TIED_VERSION], FLAG_OPTIONAL;
    /// Event counts of warps.
    Accounts = "ACCT", [1], 0;
    /// Places and times of the warps in the previous accounting section.
    Spans = "SPAN", [1, TIED_VERSION], FLAG_OPTIONAL;
    /// Sites with recorded addresses or values.
    Sites = "SITE", [1], FLAG_OPTIONAL;
    /// Addresses and values.
    Data = "DATA", [TILES_VERSION], FLAG_OPTIONAL;
    /// Access counts of warps.
    DataAccounts = "DACC", [1], FLAG_OPTIONAL;
    /// Memory that kernels can access.
    Buffers = "BUFS", [1], FLAG_OPTIONAL;
    /// Reason for an incomplete launch.
    EarlyEnd = "ENDS", [1], FLAG_OPTIONAL;
    /// Times of launches on the host's clocks.
    Host = "HOST", [1], FLAG_OPTIONAL;
    /// Offsets of sections.
    Index = "INDX", [1], 0;
    /// Offset of the index.
    Trailer = "TAIL", [1], 0;
}

impl SectionKind {
    /// Returns the tag in the file.
    pub const fn tag(self) -> Tag {
        match self.name().as_bytes().first_chunk() {
            Some(letters) => Tag(*letters),
            None => panic!("a tag has four letters"),
        }
    }

    /// Returns the kind with this tag.
    pub fn from_tag(tag: Tag) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.tag() == tag)
    }

    /// Returns the written version. Some [launches](super::LaunchInfo::version) and frames have version 2.
    pub const fn version(self) -> u16 {
        match self {
            Self::Times | Self::Spans => TIED_VERSION,
            Self::Data => TILES_VERSION,
            _ => 1,
        }
    }
}

/// Header of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionHeader {
    /// Kind of the section.
    pub tag: Tag,
    /// Version of this kind of section.
    pub version: u16,
    /// [`FLAG_OPTIONAL`] or 0.
    pub flags: u16,
    /// Size of the body, in bytes.
    pub length: u64,
    /// CRC-32 of the body.
    pub body_crc: u32,
}

impl SectionHeader {
    /// Creates the header of a section with this body.
    pub fn for_body(kind: SectionKind, body: &[u8]) -> Self {
        Self::for_parts(kind, kind.version(), &[body])
    }

    fn for_parts(kind: SectionKind, version: u16, body: &[&[u8]]) -> Self {
        let mut body_crc = crc32fast::Hasher::new();
        body.iter().for_each(|part| body_crc.update(part));
        let length = body.iter().map(|part| part.len() as u64).sum();
        let body_crc = body_crc.finalize();
        Self { tag: kind.tag(), version, flags: kind.flags(), length, body_crc }
    }

    /// Encodes the header.
    pub fn encode(&self) -> [u8; SECTION_HEADER_BYTES] {
        let mut bytes = Vec::with_capacity(SECTION_HEADER_BYTES);
        bytes.extend_from_slice(&self.tag.0);
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&self.flags.to_le_bytes());
        bytes.extend_from_slice(&self.length.to_le_bytes());
        bytes.extend_from_slice(&self.body_crc.to_le_bytes());
        push_crc(&mut bytes, 0);
        bytes.try_into().expect("4 + 2 + 2 + 8 + 4 + 4 bytes")
    }

    /// Decodes the header at file offset `at`. `bytes` may be longer. Rejects unknown flags and a long body.
    pub fn parse(bytes: &[u8], at: u64) -> Result<Self, FormatError> {
        const PART: &str = "section header";
        let bytes = &bytes[..bytes.len().min(SECTION_HEADER_BYTES)];
        let mut fields = Fields::new(PART, bytes, at);
        let tag = Tag(fields.take("tag")?);
        let version = fields.u16("version")?;
        let flags = fields.u16("flags")?;
        let length = fields.u64("length")?;
        let body_crc = fields.u32("body checksum")?;
        fields.crc("header")?;
        if flags & !FLAG_OPTIONAL != 0 {
            return Err(FormatError::Flags {
                section: PART,
                offset: at.saturating_add(6),
                found: flags & !FLAG_OPTIONAL,
            });
        }
        if length > MAX_SECTION_BYTES {
            return Err(FormatError::too_large(
                PART,
                "length",
                at.saturating_add(8),
                length,
                MAX_SECTION_BYTES,
            ));
        }
        Ok(Self { tag, version, flags, length, body_crc })
    }

    /// Returns true if a reader that does not support the section may skip it.
    pub const fn optional(&self) -> bool {
        self.flags & FLAG_OPTIONAL != 0
    }

    /// Returns the size of the section, header included, in bytes.
    pub const fn total_bytes(&self) -> u64 {
        self.length + SECTION_HEADER_BYTES as u64
    }

    /// Returns the kind of the section at `at`; `None` to skip it. Fails if it is unknown and not optional.
    pub fn kind(&self, at: u64) -> Result<Option<SectionKind>, FormatError> {
        match SectionKind::from_tag(self.tag) {
            Some(kind) if kind.readable_versions().contains(&self.version) => Ok(Some(kind)),
            _ if self.optional() => Ok(None),
            Some(kind) => Err(FormatError::Version {
                section: kind.name(),
                offset: at.saturating_add(4),
                found: self.version,
                readable: kind.readable_versions(),
            }),
            None => Err(FormatError::UnknownSection { tag: self.tag, offset: at }),
        }
    }
}

/// Encodes a section: header and body.
pub fn encode_section(kind: SectionKind, body: &[u8]) -> Vec<u8> {
    encode_section_of(kind, &[body])
}

pub(super) fn encode_section_of(kind: SectionKind, body: &[&[u8]]) -> Vec<u8> {
    encode_section_version(kind, kind.version(), body)
}

pub(super) fn encode_section_version(kind: SectionKind, version: u16, body: &[&[u8]]) -> Vec<u8> {
    let length = body.iter().map(|part| part.len()).sum::<usize>();
    let mut section = Vec::with_capacity(SECTION_HEADER_BYTES + length);
    section.extend_from_slice(&SectionHeader::for_parts(kind, version, body).encode());
    body.iter().for_each(|part| section.extend_from_slice(part));
    section
}

/// Checks the length and checksum of the body of the section at file offset `at`.
pub fn check_body(
    kind: SectionKind,
    header: &SectionHeader,
    body: &[u8],
    at: u64,
) -> Result<(), FormatError> {
    let offset = at.saturating_add(SECTION_HEADER_BYTES as u64);
    let available = body.len() as u64;
    if available != header.length {
        return Err(FormatError::Short {
            section: kind.name(),
            field: "body",
            offset,
            needed: header.length,
            available,
        });
    }
    let computed = crc32fast::hash(body);
    if computed != header.body_crc {
        return Err(FormatError::Checksum {
            section: kind.name(),
            part: "body",
            offset,
            stored: header.body_crc,
            computed,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_versions_are_frozen() {
        let frozen = SectionKind::ALL.map(|kind| (kind.tag().0, kind.version(), kind.readable_versions()));
        let (one, two): (&[u16], &[u16]) = (&[1], &[1, 2]);
        assert_eq!(
            frozen,
            [
                (*b"META", 1, one),
                (*b"ORIG", 1, one),
                (*b"MORE", 1, one),
                (*b"TEXT", 1, one),
                (*b"CODE", 1, one),
                (*b"WAIT", 1, one),
                (*b"LABL", 1, one),
                (*b"STCK", 1, one),
                (*b"UNTR", 1, one),
                (*b"LNCH", 1, two),
                (*b"FRAM", 1, two),
                (*b"TIME", 2, two),
                (*b"ACCT", 1, one),
                (*b"SPAN", 2, two),
                (*b"SITE", 1, one),
                (*b"DATA", 2, &[2]),
                (*b"DACC", 1, one),
                (*b"BUFS", 1, one),
                (*b"ENDS", 1, one),
                (*b"HOST", 1, one),
                (*b"INDX", 1, one),
                (*b"TAIL", 1, one),
            ]
        );
        assert_eq!((SECTION_HEADER_BYTES, FLAG_OPTIONAL), (24, 1));
        for kind in SectionKind::ALL {
            assert_eq!(kind.name().as_bytes(), kind.tag().0);
            assert_eq!(SectionKind::from_tag(kind.tag()), Some(kind));
        }
    }

    #[test]
    fn header_bytes_are_frozen() {
        let header = SectionHeader {
            tag: Tag(*b"META"),
            version: 1,
            flags: FLAG_OPTIONAL,
            length: 0x0102_0304,
            body_crc: 0xdead_beef,
        };
        let bytes = header.encode();
        assert_eq!(
            bytes[..20],
            [b'M', b'E', b'T', b'A', 1, 0, 1, 0, 4, 3, 2, 1, 0, 0, 0, 0, 0xef, 0xbe, 0xad, 0xde]
        );
        assert_eq!(SectionHeader::parse(&bytes, 0), Ok(header));
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(SectionHeader::parse(&bad, 0).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_length_of_2_to_the_63_is_refused_by_name() {
        let header = SectionHeader { tag: Tag(*b"FRAM"), version: 1, flags: 0, length: 1 << 63, body_crc: 0 };
        let error = SectionHeader::parse(&header.encode(), 1000).unwrap_err();
        assert_eq!(
            error.to_string(),
            "section header: field `length` at offset 1008 is 9223372036854775808, over the format's limit of 33554432"
        );
    }

    #[test]
    fn unknown_sections_are_skipped_only_when_optional() {
        let mut header = SectionHeader { tag: Tag(*b"NEW!"), version: 1, flags: 0, length: 0, body_crc: 0 };
        assert_eq!(header.kind(70), Err(FormatError::UnknownSection { tag: Tag(*b"NEW!"), offset: 70 }));
        header.flags = FLAG_OPTIONAL;
        assert_eq!(header.kind(70), Ok(None));
        header = SectionHeader { tag: Tag(*b"ACCT"), version: 3, flags: 0, length: 0, body_crc: 0 };
        assert!(matches!(
            header.kind(70),
            Err(FormatError::Version { section: "ACCT", offset: 74, found: 3, .. })
        ));
        header.flags = 2;
        assert_eq!(
            SectionHeader::parse(&header.encode(), 0),
            Err(FormatError::Flags { section: "section header", offset: 6, found: 2 })
        );
    }
}
