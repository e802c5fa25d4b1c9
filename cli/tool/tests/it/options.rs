//! Options of each door, as in the table of `docs/reference/options.md`.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{Args, Command};
use serde_json::Value;
use warptrace_spec::{Door, RunSpec, refusal};

use crate::support::run;

const BEGIN: &str = "<!-- made by the test `options`: begin -->\n";
const END: &str = "<!-- made by the test `options`: end -->";
/// Fields without a door: for tests and measurements.
const INTERNAL: [&str; 1] = ["marks"];

fn fields() -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    let mut objects = vec![serde_json::from_str(&RunSpec::default().to_text()).unwrap()];
    while let Some(Value::Object(object)) = objects.pop() {
        for (name, value) in object {
            match value {
                Value::Object(_) => objects.push(value),
                _ => drop(fields.insert(name)),
            }
        }
    }
    fields
}

fn has(help: &str, option: &str) -> bool {
    help.split(|character: char| character.is_whitespace() || "[=,".contains(character))
        .any(|word| word == format!("--{option}"))
}

#[test]
fn every_door_has_every_option_or_says_why_not() {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|path| path.join("Cargo.lock").is_file());
    let root = root.unwrap();
    let builder = std::fs::read_to_string(root.join("tracer-host/warptrace/src/options.rs")).unwrap();
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let builder = builder.lines().filter(is_code).collect::<Vec<_>>().join("\n");
    let [demo, runs] = ["demo", "run"].map(|command| run(&[command, "--help"]).1);
    let arguments = RunSpec::augment_args(Command::new("options"));
    let mut options: Vec<(String, String)> = arguments
        .get_arguments()
        .map(|argument| (argument.get_id().to_string(), argument.get_long().unwrap().to_owned()))
        .collect();
    options.sort();
    let known: BTreeSet<String> = options.iter().map(|(id, _)| id.clone()).collect();
    let internal = INTERNAL.map(str::to_owned);
    assert_eq!(&known | &BTreeSet::from(internal), fields(), "arguments and text have the same fields");

    let mut notes: Vec<&str> = Vec::new();
    let mut rows = String::new();
    for (id, option) in &options {
        let method = if id == "counting" { id.clone() } else { option.replace('-', "_") };
        let doors = [
            (Door::Command, has(&demo, option), format!("`--{option}`")),
            (Door::Run, has(&runs, option) && refusal(Door::Run, id).is_none(), format!("`--{option}`")),
            (Door::Library, builder.contains(&format!("pub fn {method}(")), format!("`{method}`")),
        ];
        let mut cells = String::new();
        for (door, is_there, name) in doors {
            let reason = refusal(door, id);
            assert_eq!(is_there, reason.is_none(), "{id} at {door:?}: {reason:?}");
            let cell = reason.map_or(name, |reason| {
                let note = notes.iter().position(|known| *known == reason).unwrap_or_else(|| {
                    notes.push(reason);
                    notes.len() - 1
                });
                format!("no ({})", note + 1)
            });
            cells.push_str(&format!(" {cell} |"));
        }
        rows.push_str(&format!("|{cells}\n"));
    }
    let stream = refusal(Door::Run, "policy stream").unwrap();
    let note = notes.iter().position(|known| *known == stream).unwrap();
    rows = rows.replacen(
        "`--policy` | `--policy` |",
        &format!("`--policy` | `--policy`, not `stream` ({}) |", note + 1),
        1,
    );
    let mut table = "| `demo`, `warptrace-bench record` | `run` | `TraceBuilder` |\n| --- | --- | --- |\n"
        .to_owned()
        + &rows;
    for (number, reason) in notes.iter().enumerate() {
        table.push_str(&format!("\n({}) {reason}.\n", number + 1));
    }

    let page = root.join("docs/reference/options.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the page has a place for the table");
    let (old, after) = rest.split_once(END).expect("which has an end");
    if std::env::var_os("WARPTRACE_OVERWRITE_PAGE").is_some_and(|value| value == "1") {
        std::fs::write(&page, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert!(
            old == table,
            "docs/reference/options.md is old: WARPTRACE_OVERWRITE_PAGE=1 writes the table\n{table}"
        );
    }
}
