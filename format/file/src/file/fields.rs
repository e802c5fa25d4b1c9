//! Reading and writing of little-endian fields, with names and offsets for errors.

use super::error::FormatError;
use super::frame::StoredAs;

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
    pub(super) fn new(section: &'static str, bytes: &'a [u8], start: u64) -> Self {
        Self { section, bytes, position: 0, start }
    }

    pub(super) fn offset(&self) -> u64 {
        self.start.saturating_add(self.position as u64)
    }

    fn slice(&mut self, field: &'static str, length: usize) -> Result<&'a [u8], FormatError> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let found = rest.get(..length).ok_or_else(|| FormatError::Short {
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

    /// Reads a varint: seven bits per byte, the lowest first; at most 64 bits.
    pub(super) fn varint(&mut self, field: &'static str) -> Result<u64, FormatError> {
        let offset = self.offset();
        let first = self.u8(field)?;
        let mut value = u64::from(first & 0x7f);
        let mut more = first >= 0x80;
        let mut shift = 7;
        while more {
            let byte = self.u8(field)?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || (bits << shift) >> shift != bits {
                return Err(self.invalid(field, offset, u64::MAX, "a number of at most 64 bits"));
            }
            value |= bits << shift;
            more = byte >= 0x80;
            shift += 7;
        }
        Ok(value)
    }

    /// Skips up to `most` one-byte varints that are equal to `value`. Returns their number.
    pub(super) fn skip_equal(&mut self, value: u64, most: u32) -> u32 {
        let Some(byte) = u8::try_from(value).ok().filter(|byte| *byte < 0x80) else { return 0 };
        let rest = self.rest();
        let rest = &rest[..rest.len().min(most as usize)];
        let (eights, few) = rest.as_chunks::<8>();
        let all = u64::from_le_bytes([byte; 8]);
        let mut equal = 8 * eights.iter().take_while(|eight| u64::from_le_bytes(**eight) == all).count();
        match eights.get(equal / 8) {
            Some(eight) => equal += (u64::from_le_bytes(*eight) ^ all).trailing_zeros() as usize / 8,
            None => equal += few.iter().take_while(|next| **next == byte).count(),
        }
        self.position += equal;
        u32::try_from(equal).unwrap_or(most)
    }

    /// Reads a [`varint`](Self::varint) of at most 32 bits.
    pub(super) fn varint32(&mut self, field: &'static str) -> Result<u32, FormatError> {
        let offset = self.offset();
        let value = self.varint(field)?;
        u32::try_from(value).map_err(|_| self.invalid(field, offset, value, "a number of at most 32 bits"))
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    pub(super) fn zero<const N: usize>(&mut self, field: &'static str) -> Result<(), FormatError> {
        let offset = self.offset();
        match self.take::<N>(field)?.into_iter().find(|&byte| byte != 0) {
            None => Ok(()),
            Some(byte) => Err(self.invalid(field, offset, u64::from(byte), "zero")),
        }
    }

    /// Reads and checks the CRC-32 of the bytes before it.
    pub(super) fn crc(&mut self, part: &'static str) -> Result<(), FormatError> {
        let computed = crc32fast::hash(self.bytes.get(..self.position).unwrap_or_default());
        let stored = self.u32("checksum")?;
        if stored == computed {
            Ok(())
        } else {
            Err(FormatError::Checksum { section: self.section, part, offset: self.start, stored, computed })
        }
    }

    pub(super) fn end(&self) -> Result<(), FormatError> {
        let left = self.bytes.len() - self.position;
        if left == 0 {
            Ok(())
        } else {
            Err(self.invalid("end of body", self.offset(), left as u64, "no bytes after the last field"))
        }
    }

    pub(super) fn invalid(
        &self,
        field: &'static str,
        offset: u64,
        value: u64,
        expected: impl Into<std::borrow::Cow<'static, str>>,
    ) -> FormatError {
        FormatError::invalid(self.section, field, offset, value, expected)
    }

    /// Returns an error if `value`, just read from the last `width` bytes, is over `limit`.
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
        Err(FormatError::too_large(self.section, field, offset, value, limit))
    }

    pub(super) fn stored_as<const N: usize>(&mut self) -> Result<StoredAs, FormatError> {
        let offset = self.offset();
        let byte = self.u8("compression")?;
        self.zero::<N>("reserved")?;
        StoredAs::from_byte(byte).ok_or_else(|| self.invalid("compression", offset, byte.into(), "0 or 1"))
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time are meant")]
pub(super) fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Maps a small difference to a small number: 0, -1, 1, -2, 2 become 0, 1, 2, 3, 4.
#[inline]
pub(super) const fn zigzag(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

pub(super) const fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

pub(super) fn push_crc(bytes: &mut Vec<u8>, from: usize) {
    let crc = crc32fast::hash(&bytes[from..]);
    bytes.extend_from_slice(&crc.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_come_back() {
        let mut bytes = Vec::new();
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), 1 << 63, u64::MAX];
        numbers.iter().for_each(|&number| push_varint(&mut bytes, number));
        let mut fields = Fields::new("test", &bytes, 0);
        for number in numbers {
            assert_eq!(fields.varint("number"), Ok(number));
        }
        assert_eq!(fields.end(), Ok(()));
        for difference in [0, -1, 1, -2, i64::MAX, i64::MIN] {
            assert_eq!(unzigzag(zigzag(difference)), difference);
        }
        assert_eq!([0, -1, 1, -2, 2].map(zigzag), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn numbers_of_more_than_64_bits_and_cut_ones_are_refused() {
        let read = |bytes: &[u8]| Fields::new("test", bytes, 0).varint("number");
        assert!(matches!(read(&[0xff; 9]), Err(FormatError::Short { .. })));
        let over = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        assert!(matches!(read(&over), Err(FormatError::Invalid { .. })));
        assert!(matches!(read(&[0x80; 12]), Err(FormatError::Invalid { .. })));
        // Longer than necessary, up to ten bytes.
        assert_eq!(read(&[0x80, 0]), Ok(0));
        assert_eq!(read(&[0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0]), Ok(1));
        let wide = Fields::new("test", &[0x80, 0x80, 0x80, 0x80, 0x10], 0).varint32("number");
        assert!(matches!(wide, Err(FormatError::Invalid { value: 0x1_0000_0000, .. })));
    }
}
