//! Section contents: consecutive columns, optionally compressed together.

use std::ops::RangeInclusive;

use warptrace_columns::{ColumnCursor, Element, Header, Layout, Packing, Shape};

use super::error::FormatError;
use super::fields::Fields;
use super::frame::{Compression, StoredAs, compress, decompress};
use super::limits::MAX_FRAME_BYTES;
use super::section::{SectionKind, encode_section_of};

/// Maximum bytes of columns, before compression, for which several forms are tried.
const FEW_BYTES: usize = 1 << 15;
/// zstd level for up to [`FEW_BYTES`]: all forms take 0.1 to 2 ms; at level 19, three to six times as long.
const FEW_BYTES_LEVEL: i32 = 9;

/// Appends a column as differences of the given order.
pub(super) fn put<T: Element>(values: &[T], order: usize, compression: Compression, to: &mut Vec<u8>) {
    put_shaped(values, Shape::new(order, 1), compression, to);
}

/// Like [`put`], as differences of tuples.
fn put_shaped<T: Element>(values: &[T], shape: Option<Shape>, compression: Compression, to: &mut Vec<u8>) {
    match (compression, shape) {
        // zstd compresses whole bytes better than packed bits.
        (Compression::Suited | Compression::Zstd(_), Some(shape)) => {
            Layout { shape, zero_runs: false, packing: Packing::StreamVByte }.encode(values, to);
        }
        _ => _ = warptrace_columns::encode(values, 1, to),
    }
}

/// Returns the shape whose column takes fewer bytes before compression.
pub(super) fn shorter(values: &[u32], shapes: [Option<Shape>; 2]) -> Option<Shape> {
    let bytes = |shape: &Option<Shape>| {
        let mut column = Vec::new();
        put_shaped(values, *shape, Compression::Suited, &mut column);
        column.len()
    };
    shapes.into_iter().flatten().map(Some).min_by_key(bytes).flatten()
}

/// Encodes a section, header and body, from its fixed part and at most [`MAX_FRAME_BYTES`] of contents.
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

pub(super) struct Stored {
    plain: Vec<u8>,
    stored_as: StoredAs,
    bytes: Vec<u8>,
}

impl Stored {
    /// Stores columns as differences of their shapes. For few bytes, also tries the plain values, each column
    /// in its smallest form and, if the writer chooses the compression, a longer search by zstd.
    pub(super) fn new(
        section: &'static str,
        columns: &[(&[u32], Option<Shape>)],
        compression: Compression,
    ) -> Result<Self, FormatError> {
        let with = |is_shaped: bool, packed_for: Compression| {
            let mut plain = Vec::new();
            for &(column, shape) in columns {
                let shape = if is_shaped { shape } else { Shape::new(0, 1) };
                put_shaped(column, shape, packed_for, &mut plain);
            }
            plain
        };
        let mut smallest = Self::compressed(section, with(true, compression), compression)?;
        if compression == Compression::None || smallest.plain.len() > FEW_BYTES {
            return Ok(smallest);
        }
        for plain in [with(false, compression), with(false, Compression::None)] {
            smallest = smallest.or_smaller(Self::compressed(section, plain, compression)?);
        }
        if compression == Compression::Suited {
            let longer =
                Self::compressed(section, smallest.plain.clone(), Compression::Zstd(FEW_BYTES_LEVEL))?;
            smallest = smallest.or_smaller(longer);
        }
        Ok(smallest)
    }

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

pub(super) struct Contents {
    section: &'static str,
    at: u64,
    plain: Vec<u8>,
}

impl Contents {
    /// Reads a section's end: `plain bytes` (at most `most`), compression, three zeros, contents. Rejects
    /// contents that do not decompress as announced.
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

    pub(super) fn wrong(&self, message: String) -> FormatError {
        FormatError::Contents { section: self.section, offset: self.at, message }
    }

    pub(super) fn columns(&self) -> Columns<'_> {
        Columns { contents: self, source: ColumnCursor::new(&self.plain) }
    }
}

pub(super) struct Columns<'c> {
    contents: &'c Contents,
    source: ColumnCursor<'c>,
}

impl Columns<'_> {
    /// Decodes the next column. Rejects it before decoding if its number of values is not in `expected`.
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

    /// Takes bytes between columns.
    pub(super) fn bytes(&mut self, name: &'static str, length: usize) -> Result<&[u8], FormatError> {
        self.source.take(name, length).map_err(|error| self.contents.wrong(error.to_string()))
    }

    /// Checks that no bytes follow the last column.
    pub(super) fn end(self) -> Result<(), FormatError> {
        match self.source.rest().len() {
            0 => Ok(()),
            more => Err(self.contents.wrong(format!("{more} bytes follow the columns"))),
        }
    }
}
