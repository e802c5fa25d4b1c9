//! Prefix sums on the simulator equal the CPU's, on any grid and for any length.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use warptrace_columns::Shape;
use warptrace_host::{SimDevice, SimOptions, Untraced};
use warptrace_kernels::prefix_sums::{MAX, chunk_values};
use warptrace_workloads::{WorkloadError, prefix_sums};

fn device() -> SimDevice {
    SimDevice::new(SimOptions { seed: 3, ..SimOptions::default() })
}

fn values(length: usize) -> Vec<u32> {
    (0..length as u32).map(|index| (index + 1).wrapping_mul(0x9e37_79b9) ^ index >> 3).collect()
}

fn compare(order: usize, tuple: usize, length: usize, blocks: u32) {
    let values = values(length);
    let outcome =
        prefix_sums::run(&mut Untraced(&mut device()), order, tuple, &values, Some(blocks)).unwrap();
    let mut expected = values;
    warptrace_columns::scan(Shape::new(order, tuple).unwrap(), &mut expected);
    assert!(outcome.sums == expected, "order {order}, tuples of {tuple}, {length} values on {blocks} blocks");
}

#[test]
fn each_order_and_tuple_is_that_of_the_cpu() {
    for order in 1..=MAX {
        for tuple in 1..=MAX {
            let chunk = chunk_values(tuple) as usize;
            // Part of a vector, a chunk and a few values, and more chunks than blocks.
            for (length, blocks) in [(1, 1), (chunk - 3, 2), (chunk + 5, 2), (7 * chunk + 1234, 3)] {
                compare(order, tuple, length, blocks);
            }
        }
    }
}

#[test]
fn blocks_look_back_farther_than_a_window() {
    // A single block knows all previous sums; with many, most chunks have published only their own sums.
    for blocks in [1, 40] {
        compare(3, 2, 70 * chunk_values(2) as usize, blocks);
    }
}

#[test]
fn what_there_is_no_kernel_for_is_an_error() {
    for (order, tuple) in [(0, 1), (5, 1), (1, 0), (1, 5)] {
        let outcome = prefix_sums::run(&mut Untraced(&mut device()), order, tuple, &[1], None);
        assert!(matches!(outcome, Err(WorkloadError::Option { .. })), "{order}, {tuple}");
    }
}
