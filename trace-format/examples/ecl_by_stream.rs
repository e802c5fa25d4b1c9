//! What the ratio of `ecl` depends on, with its default parameters: the location of a loop's event, and how
//! often lanes part. Prints Markdown.
//!
//! ```text
//! cargo run --release -p warptrace-format --example ecl_by_stream > results/ecl-by-stream.md
//! ```

use warptrace_format::codec::{CodecSpec, EclParams, encode_stream};
use warptrace_format::{Event, RAW_EVENT_BYTES};

const ITERATIONS: usize = 50_000;
/// Bytes of a chunk's payload.
const CAPACITY: u32 = 4_064;

fn main() {
    println!(
        "# Ratios of `ecl` by stream\n\n\
         Made by `cargo run --release -p warptrace-format --example ecl_by_stream > results/ecl-by-stream.md`. Default parameters, \
         chunks of 4 KiB.\n\n\
         ## By the location of the loop\n\n\
         {ITERATIONS} equal events with all lanes, between one event of location 1 and one of location 4.\n\n\
         | location | ratio |\n| ---: | ---: |"
    );
    for location in 2..=32 {
        let mut stream = vec![Event { location: 1, mask: u32::MAX }];
        stream.extend(vec![Event { location, mask: u32::MAX }; ITERATIONS]);
        stream.push(Event { location: 4, mask: u32::MAX });
        println!("| {location} | {:.1} |", ratio(&stream));
    }
    println!(
        "\n## By the length of runs\n\n\
         {ITERATIONS} events of location 3; after so many a lane leaves, until one is left, and then all are back.\n\n\
         | events a run | ratio |\n| ---: | ---: |"
    );
    for run in [2, 4, 8, 12, 16, 24, 32, 64, 128, 256, 512] {
        let stream: Vec<Event> = (0..ITERATIONS)
            .map(|event| {
                // An order in which neighbours do not leave one after the other.
                let gone = (event / run) % 32;
                let mask = (0..gone).fold(u32::MAX, |mask, step| mask & !(1 << (step * 13 % 32)));
                Event { location: 3, mask }
            })
            .collect();
        println!("| {run} | {:.1} |", ratio(&stream));
    }
}

fn ratio(stream: &[Event]) -> f64 {
    let spec = CodecSpec::Ecl(EclParams::DEFAULT);
    let bytes: usize = encode_stream(spec, stream, CAPACITY).iter().map(|(_, payload)| payload.len()).sum();
    (stream.len() * RAW_EVENT_BYTES as usize) as f64 / bytes as f64
}
