//! JSON of every command conforms to its schema.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use warptrace_cli::in_process;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{DeviceInfo, Metadata};

use crate::support::{Folder, json, read_with, run, text, writer};

const SCHEMAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas");
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../decoder/decode/tests/golden");

fn commands() -> BTreeSet<String> {
    let (_, help, _) = run(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let names = list.lines().map_while(|line| line.strip_prefix("  ")?.split(' ').next().map(str::to_owned));
    // `where` takes a process instead of a trace.
    names
        .filter(|name| name != "help" && name != "where" && run(&[name, "--help"]).1.contains("--json"))
        .collect()
}

/// Both codecs, dual, not fully chosen, failed, lossy, truncated, with times, counted.
pub(crate) fn traces(folder: &Folder) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(GOLDEN)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "wtrc"))
        .collect();
    assert!(paths.len() >= 4, "{paths:?}");
    let whole = folder.traced("fractal", "whole.wtrc", &["--width", "64", "--depth", "400"]);
    let cut = folder.at("cut.wtrc");
    let bytes = fs::read(&whole).unwrap();
    fs::write(&cut, &bytes[..bytes.len() - 300]).unwrap();
    let small = ["--walks", "256", "--rounds", "64", "--memory", "1MiB"];
    paths.extend([whole, cut, folder.traced("stress", "lossy.wtrc", &small)]);
    paths.push(folder.recorded("counted.wtrc", &["--counted"]));
    paths.push(folder.recorded("timed.wtrc", &["--times", "all"]));
    paths.push(crate::marks::unfinished(folder));
    paths.extend([crate::labels::labelled(folder), crate::launch_sites::with_stacks(folder)]);
    paths.push(crate::unrecorded::partial(folder));
    paths.push(crate::roles::specialised(folder));
    paths.push(crate::values::valued(folder, "valued.wtrc", usize::MAX));
    paths.extend([crate::buffers::outside(folder), crate::unwritten_reads::unwritten(folder)]);
    paths
}

fn check(folder: &Folder, traces: &[PathBuf], more: &[Vec<&str>]) {
    let commands = commands();
    assert!(commands.len() >= 11 && commands.contains("diff"), "{commands:?}");
    let (mut lines, mut expected) = (String::new(), BTreeMap::new());
    // A line of the script's input: the name of the schema and the output.
    let mut add = |arguments: &[&str]| {
        let (_, output, errors) = in_process(&[arguments, &["--json"]].concat());
        let value: Value =
            serde_json::from_str(&output).unwrap_or_else(|_| panic!("{arguments:?}: {errors}"));
        writeln!(lines, "{} {value}", arguments[0]).unwrap();
        *expected.entry(arguments[0].to_owned()).or_insert(0) += 1;
    };
    for command in &commands {
        assert!(Path::new(SCHEMAS).join(format!("{command}.json")).exists(), "{command} has no schema");
        for path in traces {
            let others = usize::from(command == "diff");
            add(&[&[command.as_str()], &[text(path); 2][..1 + others]].concat());
        }
    }
    more.iter().for_each(|arguments| add(arguments));
    let outputs = folder.at("outputs");
    fs::write(&outputs, lines).unwrap();
    let imports = "jsonschema, referencing";
    let Some(checked) = read_with("check_schema.py", imports, &[SCHEMAS, text(&outputs)]) else { return };
    for (command, expected) in &expected {
        assert_eq!(checked[command], *expected, "{command}");
    }
}

#[test]
fn outputs_fit_their_schemas() {
    let folder = Folder::new();
    let timed = folder.recorded("timed.wtrc", &["--times", "all"]);
    let [unfinished, partial] = [crate::marks::unfinished(&folder), crate::unrecorded::partial(&folder)];
    let traces = [timed, unfinished, partial, crate::values::valued(&folder, "a.wtrc", usize::MAX)];
    check(&folder, &traces, &[vec!["top", text(&traces[0]), text(&traces[1])]]);
}

mod full {
    use super::*;

    #[test]
    fn every_output_fits_its_schema() {
        let folder = Folder::new();
        let traces = traces(&folder);
        let [whole, counted, timed] =
            ["whole.wtrc", "counted.wtrc", "timed.wtrc"].map(|name| folder.at(name));
        let mut more =
            vec![vec!["diff", text(&whole), text(&counted)], vec!["verify", text(&whole), text(&timed)]];
        more.extend(crate::sets::VIEWS.map(|view| vec![view, text(&whole), text(&counted), text(&timed)]));
        check(&folder, &traces, &more);
    }
}

#[test]
fn integers_above_2_to_the_53_are_texts() {
    let folder = Folder::new();
    let path = folder.at("late.wtrc");
    let mut metadata = Metadata::new("test", DeviceInfo::simulator("simulator"), vec![CodecSpec::Raw]);
    metadata.created_unix_seconds = Some(u64::MAX);
    writer(&path, &metadata).finish().unwrap();
    let info = json(&["info", text(&path)]);
    assert_eq!(info["metadata"]["created_unix_seconds"], u64::MAX.to_string());
}
