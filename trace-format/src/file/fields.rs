//! Reading and writing of little-endian fields that know their names and offsets.

use super::error::FormatError;

/// A cursor over the bytes of one part of a file.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    section: &'static str,
    bytes: &'a [u8],
    position: usize,
    start: u64,
}

macro_rules! integer {
    ($name:ident) => {
        pub(super) fn $name(&mut self, field: &'static str) -> Result<$name, FormatError> {
            self.take(field).map($name::from_le_bytes)
        }
    };
}

impl<'a> Fields<'a> {
    /// `start` is the file offset of `bytes`.
    pub(super) fn new(section: &'static str, bytes: &'a [u8], start: u64) -> Self {
        Self { section, bytes, position: 0, start }
    }

    /// File offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.start.saturating_add(self.position as u64)
    }

    fn slice(&mut self, field: &'static str, length: usize) -> Result<&'a [u8], FormatError> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let found = rest.get(..length).ok_or(FormatError::Short {
            section: self.section,
            field,
            offset: self.offset(),
            needed: length as u64,
            available: rest.len() as u64,
        })?;
        self.position += length;
        Ok(found)
    }

    pub(super) fn take<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], FormatError> {
        let slice = self.slice(field, N)?;
        Ok(slice.try_into().expect("the slice was taken with length N"))
    }

    pub(super) fn u8(&mut self, field: &'static str) -> Result<u8, FormatError> {
        self.take::<1>(field).map(|[byte]| byte)
    }

    integer!(u16);
    integer!(u32);
    integer!(u64);

    /// Reads `N` bytes that must be zero.
    pub(super) fn zero<const N: usize>(&mut self, field: &'static str) -> Result<(), FormatError> {
        let offset = self.offset();
        match self.take::<N>(field)?.into_iter().find(|&byte| byte != 0) {
            None => Ok(()),
            Some(byte) => Err(self.invalid(field, offset, u64::from(byte), "zero")),
        }
    }

    /// Reads the CRC-32 that covers the bytes before it.
    pub(super) fn crc(&mut self, part: &'static str) -> Result<(), FormatError> {
        let computed = crc32fast::hash(self.bytes.get(..self.position).unwrap_or_default());
        let stored = self.u32("checksum")?;
        if stored == computed {
            Ok(())
        } else {
            Err(FormatError::Checksum { section: self.section, part, offset: self.start, stored, computed })
        }
    }

    /// Ends the part: no byte may be left.
    pub(super) fn end(&self) -> Result<(), FormatError> {
        let left = self.bytes.len() - self.position;
        if left == 0 {
            Ok(())
        } else {
            Err(self.invalid("end of body", self.offset(), left as u64, "no bytes after the last field"))
        }
    }

    /// An error about the `field` at `offset`.
    pub(super) fn invalid(
        &self,
        field: &'static str,
        offset: u64,
        value: u64,
        expected: impl Into<std::borrow::Cow<'static, str>>,
    ) -> FormatError {
        FormatError::Invalid { section: self.section, field, offset, value, expected: expected.into() }
    }

    /// Fails when `value`, just read from the last `width` bytes, is over `limit`.
    pub(super) fn limit(
        &self,
        field: &'static str,
        width: u64,
        value: u64,
        limit: u64,
    ) -> Result<(), FormatError> {
        if value <= limit {
            return Ok(());
        }
        let offset = self.offset().saturating_sub(width);
        Err(FormatError::TooLarge { section: self.section, field, offset, value, limit })
    }
}

/// Appends the CRC-32 of everything in `bytes` from `from` on.
pub(super) fn push_crc(bytes: &mut Vec<u8>, from: usize) {
    let crc = crc32fast::hash(&bytes[from..]);
    bytes.extend_from_slice(&crc.to_le_bytes());
}
