//! Compression ratio of `predict` and of other designs for it, as the Markdown of `results/predict-sweep.md`.
//!
//! ```text
//! cargo run --release -p warptrace-workloads --example record_streams -- /tmp/streams
//! cargo run --release -p warptrace-format --example predict_sweep -- /tmp/streams > results/predict-sweep.md
//! ```
//!
//! The BFS trace is read from the real inputs (`WARPTRACE_INPUTS`, or `../shared/inputs` beside the
//! checkout); without it its column is left out.

#[path = "predict_sweep/designs.rs"]
mod designs;
#[path = "predict_sweep/streams.rs"]
mod streams;

use std::io::Write;
use std::path::PathBuf;

use designs::{Automaton, Context, Design};
use streams::Input;
use warptrace_format::codec::{CodecSpec, EclParams, PredictParams, encode_stream};
use warptrace_format::{Event, RAW_EVENT_BYTES};

/// Payload of a 4 KiB chunk.
const CHUNK_CAPACITY: u32 = 4096 - 32;

fn main() {
    let folder =
        std::env::args_os().nth(1).map(PathBuf::from).expect("give the folder that record_streams filled");
    let inputs = streams::all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    println!(
        "# Ratios of `predict` and of other designs\n\n\
         Made by\n\n\
         ```text\n\
         cargo run --release -p warptrace-workloads --example record_streams -- /tmp/streams\n\
         cargo run --release -p warptrace-format --example predict_sweep -- /tmp/streams > results/predict-sweep.md\n\
         ```\n\n\
         Raw bytes (5 an event) over payload bytes; chunk headers are not counted, chunks start afresh, and each stream's \
         last byte is counted whole. gzip -9 sees all streams of a program one after the other, so across warps. \
         The programs ran on the simulator: fractal 512 x 512, depth 1,024; N-body with 2,000 bodies, 2 steps; MIS on \
         New York's road network and on an R-MAT graph of 65,536 nodes and 500,000 edges, MST on the road network and \
         on rmat12, DMR on the meshes 633.2 and ttimeu10000.2, all on the thesis's grid of 192 x 256. `nbody-16k` is one \
         warp of the force kernel with 16,384 bodies, made here. BFS is Rodinia's, recorded with NVBit on sm_80.\n"
    );
    println!("| | {} |", inputs.iter().map(|input| input.name.as_str()).collect::<Vec<_>>().join(" | "));
    println!("| --- |{}", " ---: |".repeat(inputs.len()));
    row("streams", &inputs, |input| input.streams.len().to_string());
    row("events", &inputs, |input| input.events().to_string());
    row("events a stream", &inputs, |input| (input.events() / input.streams.len()).to_string());
    ratios("gzip -9", &inputs, |input| gzip(&input.streams));
    ratios("`ecl`, default", &inputs, |input| encoded(CodecSpec::Ecl(EclParams::DEFAULT), &input.streams));
    for slot_bits in [4, 5, 6, 7] {
        let spec = CodecSpec::Predict(PredictParams::new(slot_bits).expect("in range"));
        let name = format!("**`predict`, {} slots**", 1 << slot_bits);
        ratios(&name, &inputs, |input| encoded(spec, &input.streams));
    }
    for slots in [16, 32, 64, 128] {
        let automaton = Automaton { slots };
        let name = format!("A: automaton of the event before, bytes, {slots} slots");
        ratios(&name, &inputs, |input| bytes_of(input, |stream| automaton.bytes(stream)));
    }
    for (name, design) in designs() {
        ratios(&name, &inputs, |input| bytes_of(input, |stream| design.bytes(stream)));
    }
    println!("\n{}", designs::NOTES);
}

/// The designs with misses in bits, and the chosen one with one thing changed at a time.
fn designs() -> Vec<(String, Design)> {
    let chosen = Design::CHOSEN;
    let mut all = Vec::new();
    for (name, context) in [
        ("B: after an event", Context::Event),
        ("B: after two events", Context::TwoEvents),
        ("C: after a location", Context::Location),
        ("C: after two locations", Context::TwoLocations),
    ] {
        for slots in [32, 64, 128] {
            all.push((format!("{name}, bits, {slots} slots"), Design { context, slots, ..chosen }));
        }
    }
    for depth in 1..4 {
        all.push((format!("C, 32 slots, stack of {depth}"), Design { depth, ..chosen }));
    }
    all.push(("C, 32 slots, no relations: the same mask or that seen".into(), Design { depth: 0, ..chosen }));
    all.push(("C, 32 slots, without the mask seen".into(), Design { seen: false, ..chosen }));
    all.push(("C, 32 slots, two ways: a second location".into(), Design { ways: 2, ..chosen }));
    all.push(("C, 32 slots, replaced at the second miss".into(), Design { patience: true, ..chosen }));
    all
}

fn row(name: &str, inputs: &[Input], cell: impl Fn(&Input) -> String) {
    print!("| {name} |");
    for input in inputs {
        print!(" {} |", cell(input));
    }
    println!();
    std::io::stdout().flush().expect("standard output is there");
}

fn ratios(name: &str, inputs: &[Input], bytes: impl Fn(&Input) -> usize) {
    row(name, inputs, |input| {
        let raw = input.events() * RAW_EVENT_BYTES as usize;
        let ratio = raw as f64 / bytes(input) as f64;
        if ratio < 1000.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
    });
}

fn bytes_of(input: &Input, bytes: impl Fn(&[Event]) -> usize) -> usize {
    input.streams.iter().map(|stream| bytes(stream)).sum()
}

fn encoded(spec: CodecSpec, streams: &[Vec<Event>]) -> usize {
    streams
        .iter()
        .flat_map(|stream| encode_stream(spec, stream, CHUNK_CAPACITY))
        .map(|chunk| chunk.1.len())
        .sum()
}

fn gzip(streams: &[Vec<Event>]) -> usize {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(9));
    for stream in streams {
        let cut: Vec<u8> = stream.iter().flat_map(|event| event.cut()).collect();
        encoder.write_all(&cut).expect("memory takes all");
    }
    encoder.finish().expect("memory takes all").len()
}
