//! Elements written by independent threads, each of which knows two scans, are those of the plain loop.

use crate::common::{KINDS, Random, column};
use warptrace_columns::{Element, Shape, difference, zero_runs};

/// Writes elements as threads do: two scans over all values, then each value alone, in any order.
fn by_scans<T: Element>(values: &[T]) -> Vec<T> {
    let (mut zeros, mut runs) = (vec![0], vec![0]);
    for (index, &value) in values.iter().enumerate() {
        zeros.push(zeros[index] + usize::from(value == T::default()));
        runs.push(runs[index] + usize::from(zero_runs::starts(values, index)));
    }
    let length = zero_runs::place(values.len(), zeros[values.len()], runs[values.len()]);
    let mut elements = vec![None; length];
    let mut write = |at: usize, element| {
        assert_eq!(elements[at], None, "two threads write element {at}");
        elements[at] = Some(element);
    };
    let mut threads: Vec<usize> = (0..values.len()).collect();
    let mut random = Random(7);
    for left in (1..threads.len()).rev() {
        threads.swap(left, random.below(left as u64 + 1) as usize);
    }
    for index in threads {
        let at = zero_runs::place(index, zeros[index], runs[index]);
        if values[index] != T::default() {
            write(at, values[index]);
        } else if zero_runs::starts(values, index) {
            write(at, T::default());
            write(at + 1, T::truncate(zero_runs::run_length(values, index) as u64 - 1));
        }
    }
    elements.into_iter().map(|element| element.expect("a thread writes each element")).collect()
}

#[test]
fn two_scans_give_the_same_elements() {
    let shape = Shape::new(1, 1).expect("in range");
    for kind in KINDS {
        for length in [0, 1, 2, 255, 256, 257, 511, 512, 513, 5000] {
            let mut values = column::<u32>(kind, length);
            difference(shape, &mut values);
            let mut elements = vec![0; zero_runs::encoded_len(&values)];
            zero_runs::encode(&values, &mut elements);
            assert_eq!(by_scans(&values), elements, "{kind}, {length} values");
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
