//! Header of a column.

use alloc::vec::Vec;

use crate::source::push_varint;
use crate::{ColumnCursor, ColumnError, Element, Shape};

/// Maximum values of a column.
pub const MAX_VALUES: usize = 1 << 24;
/// Maximum values of a column for each byte after its header: a block of packed zeros takes one.
pub const VALUES_PER_BYTE: usize = 128;

const ORDER_SHIFT: u32 = 1;
const ORDER_MASK: u8 = 0xf;
const TUPLE_SHIFT: u32 = 5;
const PACKING_MASK: u8 = 3;
const ZERO_RUNS: u8 = 4;

/// Packing of elements into bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Packing {
    /// Unpacked, little-endian.
    Plain,
    /// See [`stream_vbyte`](crate::stream_vbyte).
    StreamVByte,
    /// See [`bits`](crate::bits).
    Bits,
}

impl Packing {
    /// All packings.
    pub const ALL: [Self; 3] = [Self::Plain, Self::StreamVByte, Self::Bits];

    const fn to_u8(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::StreamVByte => 1,
            Self::Bits => 2,
        }
    }

    const fn least_bytes(self, elements: usize, element_bytes: usize) -> usize {
        match self {
            Self::Plain => elements * element_bytes,
            Self::StreamVByte => elements + elements.div_ceil(4),
            Self::Bits => elements.div_ceil(crate::bits::BLOCK),
        }
    }
}

/// Steps that encode a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Order and tuple size of the differences.
    pub shape: Shape,
    /// True if runs of zeros are counted; see [`zero_runs`](crate::zero_runs).
    pub zero_runs: bool,
    /// Packing of the elements.
    pub packing: Packing,
}

/// Header of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Layout of the column.
    pub layout: Layout,
    /// Bits of a value, 32 or 64.
    pub bits: u32,
    /// Number of values.
    pub values: usize,
    /// Number of elements: less than the values if runs of zeros are counted, otherwise equal.
    pub elements: usize,
}

impl Header {
    /// Reads a header. Fails if a field is invalid, or if the bytes after it cannot hold the values.
    pub fn read(source: &mut ColumnCursor<'_>) -> Result<Self, ColumnError> {
        let start = source.offset();
        let invalid = |field, offset, value: u8, expected| {
            Err(ColumnError::Invalid { field, offset, value: value.into(), expected })
        };
        let first = source.byte("shape")?;
        let order = first >> ORDER_SHIFT & ORDER_MASK;
        let Some(shape) = Shape::new(order.into(), usize::from(first >> TUPLE_SHIFT) + 1) else {
            return invalid("order", start, order, "at most 8");
        };
        let second = source.byte("packing")?;
        if second & !(PACKING_MASK | ZERO_RUNS) != 0 {
            return invalid("packing", start + 1, second, "at most 7: bits 3 to 7 are zero");
        }
        let number = second & PACKING_MASK;
        let Some(packing) = Packing::ALL.into_iter().find(|packing| packing.to_u8() == number) else {
            return invalid("packing", start + 1, number, "at most 2");
        };
        let layout = Layout { shape, zero_runs: second & ZERO_RUNS != 0, packing };
        let bits = if first & 1 == 0 { u32::BITS } else { u64::BITS };

        let values_at = source.offset();
        let values = number_of(source, "number of values", MAX_VALUES)?;
        let elements =
            if layout.zero_runs { number_of(source, "number of elements", values)? } else { values };
        let (offset, available) = (source.offset(), source.rest().len());
        let needed = packing.least_bytes(elements, bits as usize / 8);
        if needed > available {
            return Err(ColumnError::Short { field: "packed elements", offset, needed, available });
        }
        if values.div_ceil(VALUES_PER_BYTE) > available {
            let (offset, value, limit) = (values_at, values as u64, (available * VALUES_PER_BYTE) as u64);
            return Err(ColumnError::TooMany { field: "number of values", offset, value, limit });
        }
        Ok(Self { layout, bits, values, elements })
    }

    pub(crate) fn new<T: Element>(layout: Layout, values: usize, elements: usize) -> Self {
        Self { layout, bits: T::BITS, values, elements }
    }

    pub(crate) fn write(self, bytes: &mut Vec<u8>) {
        let Layout { shape, zero_runs, packing } = self.layout;
        let (order, tuple) = (shape.order() as u8, shape.tuple() as u8 - 1);
        bytes.push(u8::from(self.bits == u64::BITS) | order << ORDER_SHIFT | tuple << TUPLE_SHIFT);
        bytes.push(packing.to_u8() | if zero_runs { ZERO_RUNS } else { 0 });
        push_varint(bytes, self.values as u32);
        if zero_runs {
            push_varint(bytes, self.elements as u32);
        }
    }
}

fn number_of(source: &mut ColumnCursor<'_>, field: &'static str, limit: usize) -> Result<usize, ColumnError> {
    let offset = source.offset();
    let value = source.varint(field)?;
    if value as usize > limit {
        return Err(ColumnError::TooMany { field, offset, value: value.into(), limit: limit as u64 });
    }
    Ok(value as usize)
}
