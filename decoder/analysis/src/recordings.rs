//! Differences between two recordings, apart from the behaviour of warps.

use std::collections::BTreeSet;

use serde::Serialize;
use warptrace_decoder::TraceFile;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{COMMAND, LaunchInfo};
use warptrace_format::location::SOURCE_HASH_PREFIX;

use crate::matching;
use crate::selection::kernel_name;

/// Properties that describe resource use and not the setup of a recording.
const USED: [&str; 2] = ["memory_limit", "memory_peak"];

/// A difference between two recordings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Subject: `grid of mis_find`, `codec`, or the name of a property.
    pub what: String,
    /// Values in the first and the second recording; `None` if absent.
    pub values: [Option<String>; 2],
}

/// Lists differences of kernels, launches, properties, codec, sources, tool, device and, last, command lines.
pub(crate) fn differences(traces: [&TraceFile; 2], launches: &[[&LaunchInfo; 2]]) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut add = |what: String, values: [Option<String>; 2]| {
        if values[0] != values[1] {
            found.push(Difference { what, values });
        }
    };
    let kernels = traces.map(matching::kernels);
    let of = |trace: usize, name: &str| {
        let is_of = |info: &&LaunchInfo| kernel_name(traces[trace], info) == name;
        let number = traces[trace].launches().filter(is_of).count();
        kernels[trace].contains(name).then(|| number.to_string())
    };
    for name in &kernels[0] | &kernels[1] {
        add(format!("launches of {name}"), [of(0, name), of(1, name)]);
    }
    for (what, value) in LAUNCH {
        let mut said = BTreeSet::new();
        for [first, second] in launches {
            let values = [value(first), value(second)];
            let name = kernel_name(traces[0], first);
            if values[0] != values[1] && said.insert(name) {
                add(format!("{what} of {name}"), values.map(Some));
            }
        }
    }
    let metadata = traces.map(TraceFile::metadata);
    let names: BTreeSet<&str> =
        metadata.iter().flat_map(|metadata| &metadata.properties).map(|(name, _)| name.as_str()).collect();
    let property = |name: &str| metadata.map(|metadata| metadata.property(name).map(str::to_owned));
    let is_source = |name: &&str| name.starts_with(SOURCE_HASH_PREFIX);
    for name in names.iter().filter(|name| !USED.contains(name) && **name != COMMAND && !is_source(name)) {
        add((*name).to_owned(), property(name));
    }
    let text = |text: fn(&warptrace_format::file::Metadata) -> String| metadata.map(text).map(Some);
    add(
        "codec".to_owned(),
        text(|metadata| metadata.tracks.iter().map(codec).collect::<Vec<_>>().join(" and ")),
    );
    add("policy".to_owned(), text(|metadata| metadata.policy.name().to_owned()));
    for name in names.iter().copied().filter(is_source) {
        // A source that only one recording knows counts as unchanged.
        if property(name).iter().all(Option::is_some) {
            let file = name.strip_prefix(SOURCE_HASH_PREFIX).unwrap_or(name);
            add(format!("source {file}"), property(name));
        }
    }
    add("tool".to_owned(), text(|metadata| metadata.tool.clone()));
    add("device".to_owned(), text(|metadata| metadata.device.name.clone()));
    add("driver".to_owned(), metadata.map(|metadata| metadata.device.driver_version.clone()));
    if let [Some(first), Some(second)] = metadata.map(|metadata| metadata.property(COMMAND)) {
        let only = |these: &str, others: &str| {
            let others: BTreeSet<&str> = others.split(' ').collect();
            let words: Vec<&str> = these.split(' ').filter(|word| !others.contains(word)).collect();
            (!words.is_empty()).then(|| words.join(" "))
        };
        add(COMMAND.to_owned(), [only(first, second), only(second, first)]);
    }
    found
}

fn codec(codec: &CodecSpec) -> String {
    match codec {
        CodecSpec::Ecl(params) => format!("ecl:{},{},{}", params.hash_bits, params.shift, params.window_bits),
        CodecSpec::Predict(params) => format!("predict:{}", params.slot_bits),
        other => other.name().to_owned(),
    }
}

type Fact = fn(&LaunchInfo) -> String;

const LAUNCH: [(&str, Fact); 4] = [
    ("grid", |info| size(info.grid())),
    ("block", |info| size(info.block())),
    ("dynamic shared memory", |info| format!("{} bytes", info.dynamic_shared_bytes())),
    ("recorded warps", |info| info.chosen().count().to_string()),
];

fn size(size: [u32; 3]) -> String {
    match size {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{x}x{y}"),
        [x, y, z] => format!("{x}x{y}x{z}"),
    }
}
