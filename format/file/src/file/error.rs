//! What can be wrong with bytes that claim to be a trace.

use std::borrow::Cow;

use super::section::Tag;

/// A part of a `.wtrc` file that could not be read, with the place and the value that made it so.
///
/// Offsets count bytes from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The first eight bytes are not the magic.
    #[error("not a .wtrc trace: the first bytes are {found:02x?}, expected {expected:02x?}; {hint}", expected = super::MAGIC)]
    NotATrace {
        /// The bytes found (fewer than eight in a shorter file).
        found: Vec<u8>,
        /// What probably happened, and what to do.
        hint: &'static str,
    },
    /// The bytes end inside a field.
    #[error(
        "{section}: the bytes end inside field `{field}` at offset {offset} ({needed} bytes needed, {available} left); \
         the file was cut short: copy it again or record again"
    )]
    Short {
        /// The part of the file.
        section: &'static str,
        /// The field.
        field: &'static str,
        /// Where the field begins.
        offset: u64,
        /// Bytes that the field takes.
        needed: u64,
        /// Bytes that there are.
        available: u64,
    },
    /// A version that this reader does not know.
    #[error(
        "{section} at offset {offset} has version {found}, this build reads {readable:?}; \
         read the file with the warptrace release that wrote it, or a newer one"
    )]
    Version {
        /// The part of the file.
        section: &'static str,
        /// Where the version field is.
        offset: u64,
        /// The version found.
        found: u16,
        /// The versions that this build reads.
        readable: &'static [u16],
    },
    /// A section that this reader must not skip and does not know.
    #[error("unknown section {tag} at offset {offset}; the file needs a newer warptrace")]
    UnknownSection {
        /// The tag found.
        tag: Tag,
        /// Where the section begins.
        offset: u64,
    },
    /// Flag bits without a meaning in this version.
    #[error("{section}: unknown flag bits {found:#06x} at offset {offset}; the file needs a newer warptrace")]
    Flags {
        /// The part of the file.
        section: &'static str,
        /// Where the flags are.
        offset: u64,
        /// The unknown bits.
        found: u16,
    },
    /// Stored and computed CRC-32 differ.
    #[error(
        "{section}: checksum of the {part} at offset {offset} does not match (stored {stored:08x}, computed {computed:08x}); \
         the file was damaged: copy it again or record again"
    )]
    Checksum {
        /// The section.
        section: &'static str,
        /// What the checksum covers.
        part: &'static str,
        /// Where the covered bytes begin.
        offset: u64,
        /// The checksum in the file.
        stored: u32,
        /// The checksum of the bytes found.
        computed: u32,
    },
    /// A length or count over the format's bound.
    #[error("{section}: field `{field}` at offset {offset} is {value}, over the format's limit of {limit}")]
    TooLarge {
        /// The section.
        section: &'static str,
        /// The field.
        field: &'static str,
        /// Where the field is.
        offset: u64,
        /// The value found.
        value: u64,
        /// The largest value allowed.
        limit: u64,
    },
    /// A value that contradicts the format or another field.
    #[error("{section}: field `{field}` at offset {offset} is {value}, expected {expected}")]
    Invalid {
        /// The section.
        section: &'static str,
        /// The field.
        field: &'static str,
        /// Where the field is.
        offset: u64,
        /// The value found.
        value: u64,
        /// What would be right.
        expected: Cow<'static, str>,
    },
    /// Metadata or a launch that parses but cannot be.
    #[error("{section} at offset {offset}: {message}")]
    Contents {
        /// The section.
        section: &'static str,
        /// Where the body begins.
        offset: u64,
        /// What is wrong.
        message: String,
    },
    /// The compressed bytes are not what the frame's header promised.
    #[error("{section}: the compressed bytes at offset {offset} do not decompress: {message}")]
    Decompress {
        /// The section.
        section: &'static str,
        /// Where the compressed bytes begin.
        offset: u64,
        /// What the decompressor said.
        message: String,
    },
    /// The compressor failed.
    #[error("{section}: compression failed: {message}")]
    Compress {
        /// The section.
        section: &'static str,
        /// What the compressor said.
        message: String,
    },
}

impl FormatError {
    /// A value over the format's limit.
    pub(super) fn too_large(
        section: &'static str,
        field: &'static str,
        offset: u64,
        value: u64,
        limit: impl Into<u64>,
    ) -> Self {
        Self::TooLarge { section, field, offset, value, limit: limit.into() }
    }

    /// A value that contradicts the format or another field.
    pub(super) fn invalid(
        section: &'static str,
        field: &'static str,
        offset: u64,
        value: u64,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::Invalid { section, field, offset, value, expected: expected.into() }
    }
}
