//! Library functions of the fuzz targets, so that tests can run them too. Each function panics on a finding.

use alloc::vec::Vec;

use crate::{
    ColumnCursor, Element, Header, Layout, MAX_ORDER, MAX_TUPLE, Packing, Shape, VALUES_PER_BYTE, decode,
    encode,
};

/// Interprets `data` as a layout and values and calls [`round_trip_values`].
pub fn round_trip(data: &[u8]) {
    let Some(([order, tuple, steps], values)) = data.split_first_chunk::<3>() else { return };
    let shape = Shape::new(usize::from(*order) % (MAX_ORDER + 1), usize::from(*tuple) % MAX_TUPLE + 1);
    let layout = Layout {
        shape: shape.expect("brought into its range"),
        zero_runs: steps & 1 == 1,
        packing: Packing::ALL[usize::from(steps / 2) % Packing::ALL.len()],
    };
    let words = values.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
    round_trip_values(layout, &words.collect::<Vec<_>>());
    let words = values.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    round_trip_values(layout, &words.collect::<Vec<_>>());
}

/// Checks that values survive a round trip in a layout and in the smallest one, and checks its size.
pub fn round_trip_values<T: Element>(layout: Layout, values: &[T]) {
    let mut bytes = Vec::new();
    layout.encode(values, &mut bytes);
    let middle = bytes.len();
    encode(values, layout.shape.tuple(), &mut bytes);
    let mut source = ColumnCursor::new(&bytes);
    for expected_end in [middle, bytes.len()] {
        let decoded = decode::<T>(&mut source);
        assert_eq!(decoded.as_deref(), Ok(values), "{layout:?}");
        assert_eq!(source.offset(), expected_end, "{layout:?}");
    }
    if layout.shape.order() < 3 {
        assert!(bytes.len() - middle <= middle, "{layout:?} is smaller than the smallest");
    }
}

/// Checks that any bytes give an error, or values that survive a round trip and that the bytes can hold.
pub fn decode_arbitrary(data: &[u8]) {
    decode_arbitrary_as::<u32>(data);
    decode_arbitrary_as::<u64>(data);
}

fn decode_arbitrary_as<T: Element>(data: &[u8]) {
    let mut source = ColumnCursor::new(data);
    let Ok(values) = decode::<T>(&mut source) else { return };
    assert!(values.len() <= VALUES_PER_BYTE * data.len(), "more values than the bytes can hold");
    let mut header_source = ColumnCursor::new(data);
    let header = Header::read(&mut header_source).expect("it was read before");
    assert_eq!((header.bits, header.values), (T::BITS, values.len()));
    round_trip_values(header.layout, &values);
    // Decoding ignores bytes after the column, and needs all bytes before its end.
    let end = source.offset();
    assert_eq!(decode::<T>(&mut ColumnCursor::new(&data[..end])).as_deref(), Ok(&values[..]));
    if end > 0 {
        assert!(decode::<T>(&mut ColumnCursor::new(&data[..end - 1])).is_err(), "a byte less is enough");
    }
}
