//! Measures size and speed of columns for the tables of `results/columns.md`.
//!
//! ```text
//! cargo bench -p warptrace-columns --bench columns
//! ```
//!
//! Speeds use one core and the best of many rounds, and count bytes of the values, not of the column. The
//! output of each scan is compared with plain loops before the scan is measured.
#![allow(clippy::unwrap_used, reason = "a failed bench says where")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use warptrace_columns::{ColumnCursor, Element, Layout, Packing, Shape, decode, encode, scan};

/// Values of a column: 512 KiB of 64 bits, which fit in the L2 or L3 cache.
const VALUES: usize = 1 << 16;
/// Values of scans that are compared with loops.
const MANY: usize = 1 << 24;
/// Values of measured scans: few enough that a shared machine rarely preempts a round.
const MEASURED: usize = 1 << 18;
const PATIENCE: Duration = Duration::from_millis(150);
const ROUNDS: usize = 3;

#[path = "../tests/it/common/mod.rs"]
mod common;

fn best(mut operation: impl FnMut()) -> Duration {
    let (begin, mut least, mut rounds) = (Instant::now(), Duration::MAX, 0);
    while rounds < ROUNDS || begin.elapsed() < PATIENCE {
        let start = Instant::now();
        operation();
        least = least.min(start.elapsed());
        rounds += 1;
    }
    least
}

fn speed(bytes: usize, time: Duration) -> String {
    let speed = bytes as f64 / time.as_nanos() as f64;
    if speed < 0.1 { format!("{speed:.4}") } else { format!("{speed:.2}") }
}

fn columns() -> Vec<(&'static str, Vec<u64>)> {
    let mut random = common::Random(1);
    let mut clock = 1_u64 << 44;
    let mut jitter = |steps: &[u64], jitter: u64| -> Vec<u64> {
        let mut value = |index: usize| {
            clock += steps[index % steps.len()] + random.below(jitter);
            clock
        };
        (0..VALUES).map(&mut value).collect()
    };
    let all = [
        ("clock, steps 400 to 431", jitter(&[400], 32)),
        ("clock, loop of 4 steps, jitter 8", jitter(&[36, 620, 44, 210], 8)),
        ("clock, loop of 4 steps, exact", jitter(&[36, 620, 44, 210], 1)),
        ("clock, steps 0 to 65,535", jitter(&[0], 1 << 16)),
        ("addresses, stride 128", jitter(&[128], 1)),
        ("one step in 90, else the same", common::column("sparse steps", VALUES)),
        ("random", common::column("random", VALUES)),
    ];
    all.into()
}

fn row(way: &str, raw: usize, bytes: usize, encoding: Duration, decoding: Duration) {
    let ratio = raw as f64 / bytes as f64;
    println!("| {way} | {bytes} | {ratio:.2} | {} | {} |", speed(raw, encoding), speed(raw, decoding));
}

fn of_layout<T: Element>(way: &str, layout: Layout, values: &[T], chosen: bool) {
    let mut bytes = Vec::new();
    let encoding = best(|| {
        bytes.clear();
        if chosen {
            encode(black_box(values), layout.shape.tuple(), &mut bytes);
        } else {
            layout.encode(black_box(values), &mut bytes);
        }
    });
    assert_eq!(decode::<T>(&mut ColumnCursor::new(&bytes)).as_deref(), Ok(values));
    let decoding = best(|| drop(black_box(decode::<T>(&mut ColumnCursor::new(black_box(&bytes))))));
    row(way, size_of_val(values), bytes.len(), encoding, decoding);
}

fn varints<T: Element>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        let mut value = value.to_u64();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    }
    bytes
}

fn from_varints<T: Element>(bytes: &[u8], values: &mut [T]) {
    let mut bytes = bytes.iter();
    for to in values {
        let (mut value, mut shift) = (0, 0);
        for byte in bytes.by_ref() {
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if *byte < 0x80 {
                break;
            }
        }
        *to = T::truncate(value);
    }
}

/// Measures baselines. They decode into existing memory; a column allocates.
fn baselines<T: Element>(values: &[T]) {
    let raw = size_of_val(values);
    let plain: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_u64().to_le_bytes().into_iter().take(size_of::<T>()))
        .collect();
    let mut copy = vec![0; raw];
    let copying = best(|| black_box(&mut copy).copy_from_slice(black_box(&plain)));
    row("memcpy", raw, raw, copying, copying);

    let bytes = varints(values);
    let mut decoded = vec![T::default(); values.len()];
    let encoding = best(|| drop(black_box(varints(black_box(values)))));
    let decoding = best(|| from_varints(black_box(&bytes), black_box(&mut decoded)));
    assert_eq!(decoded, values);
    row("LEB128 of the values", raw, bytes.len(), encoding, decoding);

    let differences = |values: &[T]| -> Vec<u8> {
        let mut last = T::default();
        let step = |&value: &T| value.wrapping_sub(std::mem::replace(&mut last, value)).zigzag();
        varints(&values.iter().map(step).collect::<Vec<T>>())
    };
    let bytes = differences(values);
    let encoding = best(|| drop(black_box(differences(black_box(values)))));
    let decoding = best(|| {
        from_varints(black_box(&bytes), &mut decoded);
        let mut sum = T::default();
        for value in &mut decoded {
            sum = sum.wrapping_add(value.unzigzag());
            *value = sum;
        }
        black_box(&decoded);
    });
    assert_eq!(decoded, values);
    row("LEB128 of differences", raw, bytes.len(), encoding, decoding);

    for level in [3, 19] {
        let bytes = zstd::bulk::compress(&plain, level).unwrap();
        let encoding = best(|| drop(black_box(zstd::bulk::compress(black_box(&plain), level))));
        let mut decoder = zstd::bulk::Decompressor::new().unwrap();
        let decoding = best(|| drop(black_box(decoder.decompress_to_buffer(&bytes, &mut copy[..]))));
        row(&format!("zstd -{level} of the values"), raw, bytes.len(), encoding, decoding);
    }
}

fn stored<T: Element>(name: &str, values: &[T]) {
    println!("\n### {name}, {} bits\n", T::BITS);
    println!("| way | bytes | ratio | encode GB/s | decode GB/s |\n| --- | ---: | ---: | ---: | ---: |");
    baselines(values);
    for (packing, packed) in Packing::ALL.into_iter().zip(["plain", "Stream VByte", "bits"]) {
        for zero_runs in [false, true] {
            // The best order for this packing.
            let layout = |order| Layout { shape: Shape::new(order, 1).unwrap(), zero_runs, packing };
            let bytes = |layout: Layout| {
                let mut bytes = Vec::new();
                layout.encode(values, &mut bytes);
                bytes.len()
            };
            let order = (0..3).min_by_key(|&order| bytes(layout(order))).unwrap();
            if zero_runs && bytes(layout(order)) == bytes(Layout { zero_runs: false, ..layout(order) }) {
                // Zero runs save no element and were omitted.
                continue;
            }
            let runs = if zero_runs { ", zero runs" } else { "" };
            of_layout(&format!("{packed}{runs}, order {order}"), layout(order), values, false);
        }
    }
    for tuple in [1, 4] {
        let smallest = Layout::smallest(values, tuple);
        let Layout { shape, zero_runs, packing } = smallest;
        let runs = if zero_runs { ", zero runs" } else { "" };
        let way = format!("**chosen**, tuples of {tuple}: {packing:?}{runs}, order {}", shape.order());
        of_layout(&way, smallest, values, true);
    }
}

fn scans<T: Element>() {
    println!("\n### Scans of 2^18 values of {} bits\n", T::BITS);
    println!("| tuple | order 1 | order 2 | order 3 | order 5 | order 8 |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    let values = common::column::<T>("random", MANY);
    let raw = size_of_val(&values[..MEASURED]);
    let (mut work, mut expected) = (values.clone(), values.clone());
    for tuple in 1..=8 {
        let mut line = format!("| {tuple} |");
        expected.copy_from_slice(&values);
        for order in 1..=8 {
            let shape = Shape::new(order, tuple).unwrap();
            work.copy_from_slice(&values);
            scan(shape, &mut work);
            for index in tuple..MANY {
                expected[index] = expected[index].wrapping_add(expected[index - tuple]);
            }
            assert!(work == expected, "order {order}, tuple {tuple}");
            if [1, 2, 3, 5, 8].contains(&order) {
                let work = &mut work[..MEASURED];
                line += &format!(" {} |", speed(raw, best(|| scan(shape, black_box(&mut *work)))));
            }
        }
        println!("{line}");
    }
    let copying = best(|| work[..MEASURED].copy_from_slice(black_box(&values[..MEASURED])));
    println!("\nmemcpy of the same: {} GB/s.", speed(raw, copying));
}

fn main() {
    // `cargo test --benches` does not measure.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    for (name, values) in columns() {
        stored(name, &values);
        let words: Vec<u32> = values.iter().map(|&value| value as u32).collect();
        stored(name, &words);
    }
    scans::<u32>();
    scans::<u64>();
}
