//! Splices a PTX file: `splice IN.ptx OUT.ptx [counted|each] [dual] [ring|streamed] [marks] [chooses]
//! [spans] [data] [waits] [registers|shared|local] [untraced] [after=LOCATION:COUNT]`.

use warptrace_abi::recording::Spaces;
use warptrace_format::Counting;
use warptrace_format::chosen::After;
use warptrace_ptx::splice::{LogKind, Options, Placement, Recording, splice};

fn visits(text: &str) -> Option<After> {
    let (location, count) = text.split_once(':')?;
    Some(After { location: location.parse().ok()?, count: count.parse().ok()? })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, input, output, words @ ..] = arguments.as_slice() else {
        return Err(
            "usage: splice IN.ptx OUT.ptx [counted|each] [dual] [ring|streamed] [marks] [chooses] [spans] [data] [waits] [registers|shared|local] [untraced] [after=LOCATION:COUNT]"
                .into(),
        );
    };
    let has = |word: &str| words.iter().any(|found| found == word);
    let placement = [Placement::Registers, Placement::Shared, Placement::Local]
        .into_iter()
        .find(|placement| has(placement.name()));
    let counting = match (has("counted"), has("each")) {
        (true, _) => Counting::All,
        (_, true) => Counting::Never,
        _ => Counting::Proven,
    };
    let logs = match (has("ring"), has("streamed")) {
        (_, true) => LogKind::Streamed,
        (true, false) => LogKind::Ring,
        (false, false) => LogKind::Kept,
    };
    let recording = Recording {
        counting,
        dual: has("dual"),
        logs,
        chooses: has("chooses"),
        after: words.iter().find_map(|word| visits(word.strip_prefix("after=")?)),
        placement,
        spans: has("spans"),
        data: if has("data") { Spaces::ALL } else { Spaces::NONE },
        waits: has("waits"),
    };
    let options = Options {
        kernels: None,
        recording: (!has("untraced")).then_some(recording),
        registers: &[],
        limits_bounded: false,
        architecture: if has("old") { 80 } else { 90 },
        marks: u32::from(has("marks")),
        delay: 0,
    };
    let spliced = splice(&std::fs::read_to_string(input)?, &options)?;
    for kernel in &spliced.kernels {
        println!(
            "{}: {} markers, records in {}, {} bytes of shared memory a warp",
            kernel.traced_name,
            kernel.markers,
            kernel.placement.name(),
            kernel.shared_bytes
        );
    }
    std::fs::write(output, spliced.text)?;
    Ok(())
}
