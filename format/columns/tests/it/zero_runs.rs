//! Zero runs decode to the original values and end at the expected positions.

use crate::common::{KINDS, column};
use warptrace_columns::{Shape, difference, zero_runs};

#[test]
fn elements_come_back() {
    let shape = Shape::new(1, 1).expect("in range");
    for kind in KINDS {
        for length in [0, 1, 2, 255, 256, 257, 511, 512, 513, 5000] {
            let mut values = column::<u32>(kind, length);
            difference(shape, &mut values);
            let mut elements = vec![0; zero_runs::encoded_len(&values)];
            zero_runs::encode(&values, &mut elements);
            let mut decoded = vec![9; length];
            zero_runs::decode(&elements, &mut decoded).expect("an encoder wrote it");
            assert_eq!(decoded, values, "{kind}, {length} values");
        }
    }
}

#[test]
fn runs_end_at_blocks_and_values() {
    let elements = |values: &[u64]| {
        let mut elements = vec![0; zero_runs::encoded_len(values)];
        zero_runs::encode(values, &mut elements);
        elements
    };
    assert_eq!(elements(&[7, 0, 0, 0, 5, 0, 9]), [7, 0, 2, 5, 0, 0, 9]);
    assert_eq!(elements(&[0; 600]), [0, 255, 0, 255, 0, 87]);
    let mut values = [0; 600];
    values[200] = 1;
    assert_eq!(elements(&values), [0, 199, 1, 0, 54, 0, 255, 0, 87]);
}
