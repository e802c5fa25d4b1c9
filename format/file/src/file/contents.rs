//! Contents of a section that are columns: one behind the other, and perhaps compressed together.

use std::ops::RangeInclusive;

use warptrace_columns::{ColumnCursor, Element, Header, Layout, MAX_ORDER, Packing, Shape};

use super::error::FormatError;
use super::fields::Fields;
use super::frame::{Compression, StoredAs, compress, decompress};
use super::limits::MAX_FRAME_BYTES;
use super::section::{SectionKind, encode_section_of};

/// Bytes of columns before compression up to which several ways to store them are tried.
const FEW_BYTES: usize = 1 << 15;
/// zstd's level for so few: all ways take 0.1 to 2 ms. Level 19 takes three to six times as long.
const FEW_BYTES_LEVEL: i32 = 9;

/// Appends a column: differences of an order.
pub(super) fn put<T: Element>(values: &[T], order: usize, compression: Compression, to: &mut Vec<u8>) {
    match (compression, Shape::new(order, 1)) {
        // What zstd makes of whole bytes is smaller than what it makes of packed bits.
        (Compression::Suited | Compression::Zstd(_), Some(shape)) => {
            Layout { shape, zero_runs: false, packing: Packing::StreamVByte }.encode(values, to);
        }
        _ => _ = warptrace_columns::encode(values, 1, to),
    }
}

/// Makes a section, header and body, of its fixed part and of contents that [`Contents::read`] reads.
///
/// # Errors
/// Contents over [`MAX_FRAME_BYTES`]; the compressor failed.
pub(super) fn encode_contents(
    kind: SectionKind,
    fixed: &[u8],
    plain: &[u8],
    compression: Compression,
) -> Result<Vec<u8>, FormatError> {
    let mut packed = Vec::new();
    let (stored_as, stored) = compress(kind.name(), plain, compression, &mut packed)?;
    encode_stored(kind, fixed, plain.len(), (stored_as, stored))
}

fn encode_stored(
    kind: SectionKind,
    fixed: &[u8],
    plain_bytes: usize,
    (stored_as, stored): (StoredAs, &[u8]),
) -> Result<Vec<u8>, FormatError> {
    match u32::try_from(plain_bytes) {
        Ok(bytes) if bytes <= MAX_FRAME_BYTES => {
            let packing = [stored_as.to_byte(), 0, 0, 0];
            Ok(encode_section_of(kind, &[fixed, &bytes.to_le_bytes(), &packing, stored]))
        }
        _ => Err(FormatError::too_large(kind.name(), "plain bytes", 0, plain_bytes as u64, MAX_FRAME_BYTES)),
    }
}

/// Columns as a section stores them.
pub(super) struct Stored {
    /// Before compression.
    plain: Vec<u8>,
    stored_as: StoredAs,
    bytes: Vec<u8>,
}

impl Stored {
    /// Stores columns, each of differences of an order. If they are few bytes, takes the smallest of these
    /// differences, the values themselves, and each column as small as it gets without compression; if the
    /// compression is for the writer to choose, also what zstd makes of that by a longer search.
    ///
    /// # Errors
    /// The compressor failed.
    pub(super) fn new(
        section: &'static str,
        columns: &[(&[u32], usize)],
        compression: Compression,
    ) -> Result<Self, FormatError> {
        let with = |orders: usize, packed_for: Compression| {
            let mut plain = Vec::new();
            columns
                .iter()
                .for_each(|&(column, order)| put(column, order.min(orders), packed_for, &mut plain));
            plain
        };
        let mut smallest = Self::compressed(section, with(MAX_ORDER, compression), compression)?;
        if compression == Compression::None || smallest.plain.len() > FEW_BYTES {
            return Ok(smallest);
        }
        for plain in [with(0, compression), with(0, Compression::None)] {
            smallest = smallest.or_smaller(Self::compressed(section, plain, compression)?);
        }
        if compression == Compression::Suited {
            let longer =
                Self::compressed(section, smallest.plain.clone(), Compression::Zstd(FEW_BYTES_LEVEL))?;
            smallest = smallest.or_smaller(longer);
        }
        Ok(smallest)
    }

    /// Returns the other if that stores fewer bytes.
    fn or_smaller(self, other: Self) -> Self {
        if other.bytes().len() < self.bytes().len() { other } else { self }
    }

    fn compressed(
        section: &'static str,
        plain: Vec<u8>,
        compression: Compression,
    ) -> Result<Self, FormatError> {
        let mut packed = Vec::new();
        let stored_as = compress(section, &plain, compression, &mut packed)?.0;
        Ok(Self { plain, stored_as, bytes: packed })
    }

    /// Makes a section, header and body, of its fixed part and the columns.
    ///
    /// # Errors
    /// Columns over [`MAX_FRAME_BYTES`] before compression.
    pub(super) fn encode(&self, kind: SectionKind, fixed: &[u8]) -> Result<Vec<u8>, FormatError> {
        encode_stored(kind, fixed, self.plain.len(), (self.stored_as, self.bytes()))
    }

    fn bytes(&self) -> &[u8] {
        match self.stored_as {
            StoredAs::Plain => &self.plain,
            StoredAs::Zstd => &self.bytes,
        }
    }
}

/// Contents of a section, decompressed.
pub(super) struct Contents {
    section: &'static str,
    /// File offset of what is stored.
    at: u64,
    plain: Vec<u8>,
}

impl Contents {
    /// Reads the end of a section: `plain bytes` of at most `most`, the compression, three bytes of zero, and
    /// the contents.
    ///
    /// # Errors
    /// A field over its limit, contents that do not decompress to what the section says.
    pub(super) fn read(
        section: &'static str,
        mut fields: Fields<'_>,
        most: u32,
    ) -> Result<Self, FormatError> {
        let plain_bytes = fields.u32("plain bytes")?;
        fields.limit("plain bytes", 4, plain_bytes.into(), most.into())?;
        let stored_as = fields.stored_as::<3>()?;
        let (stored, at) = (fields.rest(), fields.offset());
        let plain = decompress(section, stored_as, stored, plain_bytes as usize, at)?;
        let contents = Self { section, at, plain };
        match contents.plain.len() {
            bytes if bytes as u64 == u64::from(plain_bytes) => Ok(contents),
            bytes => Err(contents.wrong(format!("{bytes} bytes, the section announces {plain_bytes}"))),
        }
    }

    /// The error that they are wrong.
    pub(super) fn wrong(&self, message: String) -> FormatError {
        FormatError::Contents { section: self.section, offset: self.at, message }
    }

    /// Begins to read the columns.
    pub(super) fn columns(&self) -> Columns<'_> {
        Columns { contents: self, source: ColumnCursor::new(&self.plain) }
    }
}

/// Columns that are read one after the other.
pub(super) struct Columns<'c> {
    contents: &'c Contents,
    source: ColumnCursor<'c>,
}

impl Columns<'_> {
    /// Reads the next column, which has as many values as `expected` allows. No more are decoded.
    pub(super) fn next<T: Element>(
        &mut self,
        name: &str,
        expected: RangeInclusive<usize>,
    ) -> Result<Vec<T>, FormatError> {
        let described = |error| self.contents.wrong(format!("column `{name}`: {error}"));
        let values = Header::read(&mut ColumnCursor::new(self.source.rest())).map_err(described)?.values;
        if !expected.contains(&values) {
            let (least, most) = expected.into_inner();
            let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
            let message = format!("column `{name}` has {values} values, expected {expected}");
            return Err(self.contents.wrong(message));
        }
        warptrace_columns::decode(&mut self.source).map_err(described)
    }

    /// Ends behind the last column.
    ///
    /// # Errors
    /// Something follows.
    pub(super) fn end(self) -> Result<(), FormatError> {
        match self.source.rest().len() {
            0 => Ok(()),
            more => Err(self.contents.wrong(format!("{more} bytes follow the columns"))),
        }
    }
}
