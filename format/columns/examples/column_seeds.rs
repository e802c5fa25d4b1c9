//! Writes small columns into `fuzz/corpus/` as seeds for the fuzzer.

use std::error::Error;
use std::fs;
use std::path::Path;

use warptrace_columns::{Element, Layout, Packing, Shape};

#[path = "../tests/it/common/mod.rs"]
mod common;

fn main() -> Result<(), Box<dyn Error>> {
    for (number, kind) in common::KINDS.into_iter().enumerate() {
        write(number, &common::column::<u32>(kind, 40))?;
        write(number, &common::column::<u64>(kind, 40))?;
    }
    Ok(())
}

/// Writes a seed for each target. Cycles through layouts.
fn write<T: Element>(number: usize, values: &[T]) -> Result<(), Box<dyn Error>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let (order, tuple, steps) = (number % 3, number % 2, number % 6);
    // Three bytes of a layout (see `fuzzing`), then values.
    let mut input: Vec<u8> = [order, tuple, steps].map(|field| field as u8).into();
    input.extend(values.iter().flat_map(|value| value.to_u64().to_le_bytes()));
    let mut column = Vec::new();
    let shape = Shape::new(order, tuple + 1).ok_or("a shape in range")?;
    let layout = Layout { shape, zero_runs: steps % 2 == 1, packing: Packing::ALL[steps / 2] };
    layout.encode(values, &mut column);
    for (target, bytes) in [("column_round_trip", input), ("column_decode", column)] {
        fs::create_dir_all(corpus.join(target))?;
        fs::write(corpus.join(target).join(format!("{}-{number}", T::BITS)), bytes)?;
    }
    Ok(())
}
