//! Errors in the bytes of a file.

use std::borrow::Cow;

use super::section::Tag;

/// An unreadable part of a `.wtrc` file. Offsets are in bytes from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The first eight bytes are not the magic.
    #[error("not a .wtrc trace: the first bytes are {found:02x?}, expected {expected:02x?}; {hint}", expected = super::MAGIC)]
    NotATrace {
        /// First bytes of the file, fewer than eight in a shorter file.
        found: Vec<u8>,
        /// Probable cause, and a remedy.
        hint: &'static str,
    },
    /// The bytes end inside a field.
    #[error(
        "{section}: the bytes end inside field `{field}` at offset {offset} ({needed} bytes needed, {available} left); \
         the file was cut short: copy it again or record again"
    )]
    Short {
        /// Part of the file.
        section: &'static str,
        /// Name of the field.
        field: &'static str,
        /// Offset of the field.
        offset: u64,
        /// Size of the field, in bytes.
        needed: u64,
        /// Bytes left.
        available: u64,
    },
    /// An unsupported version.
    #[error(
        "{section} at offset {offset} has version {found}, this build reads {readable:?}; \
         read the file with the warptrace release that wrote it, or a newer one"
    )]
    Version {
        /// Part of the file.
        section: &'static str,
        /// Offset of the version field.
        offset: u64,
        /// Version found.
        found: u16,
        /// Versions that this build reads.
        readable: &'static [u16],
    },
    /// An unknown section that is not optional.
    #[error("unknown section {tag} at offset {offset}; the file needs a newer warptrace")]
    UnknownSection {
        /// Tag found.
        tag: Tag,
        /// Offset of the section.
        offset: u64,
    },
    /// Unknown flag bits.
    #[error("{section}: unknown flag bits {found:#06x} at offset {offset}; the file needs a newer warptrace")]
    Flags {
        /// Part of the file.
        section: &'static str,
        /// Offset of the flags.
        offset: u64,
        /// Unknown bits.
        found: u16,
    },
    /// The stored and the computed CRC-32 differ.
    #[error(
        "{section}: checksum of the {part} at offset {offset} does not match (stored {stored:08x}, computed {computed:08x}); \
         the file was damaged: copy it again or record again"
    )]
    Checksum {
        /// Name of the section.
        section: &'static str,
        /// Part that the checksum covers.
        part: &'static str,
        /// Offset of the covered bytes.
        offset: u64,
        /// Checksum in the file.
        stored: u32,
        /// Checksum of the bytes found.
        computed: u32,
    },
    /// A length or count is over the format's limit.
    #[error("{section}: field `{field}` at offset {offset} is {value}, over the format's limit of {limit}")]
    TooLarge {
        /// Name of the section.
        section: &'static str,
        /// Name of the field.
        field: &'static str,
        /// Offset of the field.
        offset: u64,
        /// Value found.
        value: u64,
        /// Largest allowed value.
        limit: u64,
    },
    /// A value contradicts the format or another field.
    #[error("{section}: field `{field}` at offset {offset} is {value}, expected {expected}")]
    Invalid {
        /// Name of the section.
        section: &'static str,
        /// Name of the field.
        field: &'static str,
        /// Offset of the field.
        offset: u64,
        /// Value found.
        value: u64,
        /// Expected values.
        expected: Cow<'static, str>,
    },
    /// Contents that decode to an invalid value.
    #[error("{section} at offset {offset}: {message}")]
    Contents {
        /// Name of the section.
        section: &'static str,
        /// Offset of the body.
        offset: u64,
        /// Description of the error.
        message: String,
    },
    /// The compressed bytes do not decompress as the header announces.
    #[error("{section}: the compressed bytes at offset {offset} do not decompress: {message}")]
    Decompress {
        /// Name of the section.
        section: &'static str,
        /// Offset of the compressed bytes.
        offset: u64,
        /// Message of the decompressor.
        message: String,
    },
    /// The compressor failed.
    #[error("{section}: compression failed: {message}")]
    Compress {
        /// Name of the section.
        section: &'static str,
        /// Message of the compressor.
        message: String,
    },
}

impl FormatError {
    pub(super) fn too_large(
        section: &'static str,
        field: &'static str,
        offset: u64,
        value: u64,
        limit: impl Into<u64>,
    ) -> Self {
        Self::TooLarge { section, field, offset, value, limit: limit.into() }
    }

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
