//! Encoding and decoding of columns with all steps.

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;

use crate::scan::scan_zigzag;
use crate::{
    ColumnCursor, ColumnError, Element, Header, Layout, MAX_VALUES, Packing, Shape, bits, difference,
    stream_vbyte, zero_runs,
};

/// Number of orders, from 0, that [`Layout::smallest`] tries.
const CHOSEN_ORDERS: usize = 3;

/// Appends the smallest column of `values` and returns its layout. Panics for more than [`MAX_VALUES`]
/// values, or if `tuple` is not 1 to [`MAX_TUPLE`](crate::MAX_TUPLE).
pub fn encode<T: Element>(values: &[T], tuple: usize, bytes: &mut Vec<u8>) -> Layout {
    let layout = Layout::smallest(values, tuple);
    layout.encode(values, bytes);
    layout
}

/// Decodes a column and leaves the source after it. Fails if the bytes are not a column of elements of `T`.
/// Allocates at most 2 x [`VALUES_PER_BYTE`](crate::VALUES_PER_BYTE) elements for each byte of the source,
/// and at most twice [`MAX_VALUES`] elements.
pub fn decode<T: Element>(source: &mut ColumnCursor<'_>) -> Result<Vec<T>, ColumnError> {
    let header = Header::read(source)?;
    if header.bits != T::BITS {
        return Err(ColumnError::Width { found: header.bits, expected: T::BITS });
    }
    let Layout { shape, packing, .. } = header.layout;
    let mut values = vec![T::default(); header.values];
    if header.layout.zero_runs {
        let mut elements = vec![T::default(); header.elements];
        packing.decode(source, &mut elements)?;
        zero_runs::decode(&elements, &mut values)?;
    } else {
        packing.decode(source, &mut values)?;
    }
    if shape.order() > 0 {
        scan_zigzag(shape, &mut values);
    }
    Ok(values)
}

impl Layout {
    /// Returns the layout with the smallest column for order 0, 1 or 2 and this tuple size; of equal sizes,
    /// the simplest. Panics if `tuple` is not 1 to [`MAX_TUPLE`](crate::MAX_TUPLE).
    pub fn smallest<T: Element>(values: &[T], tuple: usize) -> Self {
        let shape = |order| Shape::new(order, tuple).expect("a tuple has 1 to 8 elements");
        let mut smallest = Self { shape: shape(0), zero_runs: false, packing: Packing::Plain };
        let mut least = smallest.packing.encoded_len(values);
        let mut differences = Cow::Borrowed(values);
        for order in 0..CHOSEN_ORDERS {
            if order > 0 {
                difference(shape(1), differences.to_mut());
            }
            let residuals = residuals(order, &differences);
            for zero_runs in [false, true] {
                let Some(elements) = elements(zero_runs, &residuals) else { continue };
                // The size of the varint with the number of elements.
                let count = if zero_runs { 1 + elements.len().max(1).ilog2() as usize / 7 } else { 0 };
                for packing in Packing::ALL {
                    let size = count + packing.encoded_len(&elements);
                    if size < least {
                        least = size;
                        smallest = Self { shape: shape(order), zero_runs, packing };
                    }
                }
            }
        }
        smallest
    }

    /// Appends the column of `values`, without useless zero runs. Panics for more than [`MAX_VALUES`] values.
    pub fn encode<T: Element>(mut self, values: &[T], bytes: &mut Vec<u8>) {
        assert!(values.len() <= MAX_VALUES, "{} values; a column has at most {MAX_VALUES}", values.len());
        let mut differences = Cow::Borrowed(values);
        if self.shape.order() > 0 {
            difference(self.shape, differences.to_mut());
        }
        let residuals = residuals(self.shape.order(), &differences);
        let runs = elements(self.zero_runs, &residuals);
        self.zero_runs &= runs.is_some();
        let elements = runs.unwrap_or(Cow::Borrowed(&residuals));
        Header::new::<T>(self, values.len(), elements.len()).write(bytes);
        let start = bytes.len();
        bytes.resize(start + self.packing.encoded_len(&elements), 0);
        self.packing.encode(&elements, &mut bytes[start..]);
    }
}

/// Returns zigzag numbers of differences, or the values of order 0.
fn residuals<T: Element>(order: usize, differences: &[T]) -> Cow<'_, [T]> {
    match order {
        0 => Cow::Borrowed(differences),
        _ => differences.iter().map(|difference| difference.zigzag()).collect(),
    }
}

/// Returns the elements to pack; `None` if zero runs are requested but save no element.
fn elements<T: Element>(zero_runs: bool, residuals: &[T]) -> Option<Cow<'_, [T]>> {
    if !zero_runs {
        return Some(Cow::Borrowed(residuals));
    }
    let length = zero_runs::encoded_len(residuals);
    if length >= residuals.len() {
        return None;
    }
    let mut elements = vec![T::default(); length];
    zero_runs::encode(residuals, &mut elements);
    Some(Cow::Owned(elements))
}

impl Packing {
    fn encoded_len<T: Element>(self, elements: &[T]) -> usize {
        match self {
            Self::Plain => size_of_val(elements),
            Self::StreamVByte => stream_vbyte::encoded_len(elements),
            Self::Bits => bits::encoded_len(elements),
        }
    }

    fn encode<T: Element>(self, elements: &[T], bytes: &mut [u8]) {
        match self {
            Self::Plain => {
                for (bytes, element) in bytes.chunks_exact_mut(size_of::<T>()).zip(elements) {
                    bytes.copy_from_slice(&element.to_u64().to_le_bytes()[..size_of::<T>()]);
                }
            }
            Self::StreamVByte => stream_vbyte::encode(elements, bytes),
            Self::Bits => bits::encode(elements, bytes),
        }
    }

    fn decode<T: Element>(
        self,
        source: &mut ColumnCursor<'_>,
        elements: &mut [T],
    ) -> Result<(), ColumnError> {
        match self {
            Self::Plain => {
                let bytes = source.take("elements", size_of_val(elements))?.chunks_exact(size_of::<T>());
                for (element, bytes) in elements.iter_mut().zip(bytes) {
                    let mut number = [0; 8];
                    number[..bytes.len()].copy_from_slice(bytes);
                    *element = T::truncate(u64::from_le_bytes(number));
                }
                Ok(())
            }
            Self::StreamVByte => stream_vbyte::decode(source, elements),
            Self::Bits => bits::decode(source, elements),
        }
    }
}
