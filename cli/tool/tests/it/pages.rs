//! Compares pages of the documentation with the output of the tool.
//!
//! In a `console` block, each line `$ warptrace ...` or `$ warptrace-bench ...` is a command, and the
//! following lines are its output. A line `...` matches any lines. Times and lengths of files are not
//! compared. Commands without shown output are not compared either. Recordings are committed traces, with the
//! text that was printed when they were made on the simulator.

use std::path::{Path, PathBuf};

use crate::support::{Folder, fixture, tool};

const BLOCK: &str = "```console\n";
const COMMANDS: [&str; 2] = ["$ warptrace ", "$ warptrace-bench "];
/// The recording `before.wtrc` of docs/reference/answers.md.
#[cfg(any(feature = "query", feature = "tui"))]
pub(crate) const BEFORE: [&str; 10] =
    ["--graph", "road:4096", "--grid", "16x256", "--device", "sim", "--memory", "64MiB", "-o", "before.wtrc"];
/// Starts of lines with times or with data that depends on the machine. The file contains the names of
/// machine and processes, so its length varies, too.
const OTHERS: [&str; 10] = [
    "kernels ",
    "encoding ",
    "copy ",
    "write ",
    "whole run ",
    "in file ",
    "file  ",
    "fractal.wtrc: ",
    "recorded at ",
    "began ",
];

/// The trace that `warptrace demo` of the README makes. The printed text is next to it.
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/readme-demo.wtrc");

/// Runs a line without its `$ ` in a folder; returns its standard output.
fn printed(line: &str, folder: &Folder) -> String {
    let (command, head) = match line.split_once(" | head -") {
        Some((command, count)) => (command, count.parse().unwrap()),
        None => (line, usize::MAX),
    };
    let mut arguments: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches('\'')).collect();
    if ["demo", "record"].contains(&arguments[1]) && !command.contains("--device") {
        // The pages were written without a GPU, and with the default limit of a large machine.
        arguments.extend(["--device", "sim", "--memory", "1GiB"]);
    }
    let kept = match arguments[..2] {
        ["warptrace", "demo"] => Some(Some(DEMO.into())),
        ["warptrace-bench", "record"] => Some(fixture(&arguments[2..])),
        _ => None,
    };
    let printed = match kept {
        Some(None) => String::new(),
        Some(Some(kept)) => {
            let file = arguments.iter().position(|word| *word == "-o").unwrap() + 1;
            std::fs::copy(&kept, folder.at(arguments[file])).unwrap();
            std::fs::read_to_string(kept.with_extension("txt")).unwrap_or_default()
        }
        // The page shows no output of this command.
        None if !cfg!(feature = "parquet") && line.contains(" --to parquet ") => String::new(),
        None => ran(&arguments[1..], folder),
    };
    printed.lines().take(head).map(|line| format!("{}\n", line.trim_end())).collect()
}

fn ran(arguments: &[&str], folder: &Folder) -> String {
    let output = tool().current_dir(folder.at("")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the part of a line that is compared: only the name if the line varies from run to run.
fn comparable(line: &str) -> &str {
    OTHERS.into_iter().find(|name| line.starts_with(name)).unwrap_or(line)
}

fn shows(shown: &[&str], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line.trim() == "..." => {
            (0..=printed.len()).any(|skipped| shows(rest, &printed[skipped..]))
        }
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(next, behind)| comparable(line) == comparable(next) && shows(rest, behind)),
    }
}

/// Returns the updated block, and the number of outputs that it shows. Fails with the command and its output
/// if a person must choose the place of a line `...`.
fn current(block: &str, folder: &Folder) -> Result<(String, usize), String> {
    let first = COMMANDS.iter().filter_map(|command| block.find(command)).min();
    let (before, commands) = block.split_at(first.unwrap_or(block.len()));
    let (mut text, mut outputs) = (before.to_owned(), 0);
    for part in commands.split_inclusive('\n').fold(Vec::<String>::new(), |mut parts, line| {
        if line.starts_with("$ ") || parts.is_empty() {
            parts.push(String::new());
        }
        if let Some(last) = parts.last_mut() {
            last.push_str(line);
        }
        parts
    }) {
        let (command, shown) = part.split_once('\n').unwrap_or((&part, ""));
        let Some(line) =
            command.strip_prefix("$ ").filter(|_| COMMANDS.iter().any(|is| command.starts_with(is)))
        else {
            text += &part;
            continue;
        };
        let printed = printed(line, folder);
        let (old, new): (Vec<&str>, Vec<&str>) = (shown.lines().collect(), printed.lines().collect());
        outputs += usize::from(!shown.is_empty());
        if shown.is_empty() || shows(&old, &new) {
            text += &part;
        } else if old.iter().any(|line| line.trim() == "...") {
            return Err(format!("`{command}` is not what is shown; it prints:\n{printed}"));
        } else {
            text += &format!("{command}\n{printed}");
        }
    }
    Ok((text, outputs))
}

pub(crate) fn overwrites() -> bool {
    std::env::var_os("WARPTRACE_OVERWRITE_PAGE").is_some_and(|value| value == "1")
}

/// Compares pages, which show at least `least` outputs. Later pages use the files of the first one.
fn check(pages: &[&str], least: usize) {
    let folder = Folder::new();
    let shown: usize = pages.iter().map(|page| check_page(page, &folder)).sum();
    assert!(shown >= least, "{pages:?} show {shown} outputs");
}

fn check_page(page: &str, folder: &Folder) -> usize {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let old = std::fs::read_to_string(&path).unwrap();
    let mut parts = old.split(BLOCK);
    let mut new = parts.next().unwrap().to_owned();
    let mut shown = 0;
    for part in parts {
        let (block, rest) = part.split_once("```").unwrap();
        let (text, outputs) = current(block, folder).unwrap_or_else(|wrong| panic!("{page}: {wrong}"));
        new += &format!("{BLOCK}{text}```{rest}");
        shown += outputs;
    }
    if overwrites() {
        std::fs::write(&path, new).unwrap();
        return shown;
    }
    for (line, (old, new)) in (1..).zip(old.lines().zip(new.lines())) {
        assert_eq!(old, new, "{page}:{line}; CONTRIBUTING.md says how to write the page anew");
    }
    assert_eq!(old, new, "{page}");
    shown
}

#[test]
fn the_readme_shows_what_the_tool_prints() {
    check(&["README.md"], 3);
}

#[test]
fn the_tour_shows_what_the_tool_prints() {
    check(&["docs/users/tour.md"], 8);
}

#[test]
fn the_pages_of_answers_show_what_the_tool_prints() {
    const FOLDER: &str = "docs/reference/answers";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(FOLDER);
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let pages: Vec<String> = names.map(|name| format!("{FOLDER}/{}", name.display())).collect();
    let first = format!("{FOLDER}.md");
    let all: Vec<&str> = std::iter::once(&first).chain(&pages).map(String::as_str).collect();
    check(&all, 8);
}

/// The code in README.md is the code of the example. `tracer-host/warptrace/tests/it/example.rs` builds and
/// runs the example.
#[test]
fn the_code_of_the_readme_is_from_the_example() {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let sources = ["kernels.rs", "main.rs"].map(|file| read(&format!("examples/spmv/src/{file}")));
    let page = read("README.md");
    let blocks: Vec<&str> =
        page.split("```rust\n").skip(1).map(|part| part.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 2);
    for (block, source) in blocks.iter().zip(&sources) {
        assert!(source.contains(block), "README.md has code that is not in the example:\n{block}");
    }
}

#[test]
fn dots_stand_for_any_lines_and_times_are_not_compared() {
    assert!(shows(&["a", " ...", "d"], &["a", "b", "c", "d"]));
    assert!(shows(&["..."], &[]));
    assert!(shows(&["kernels    1.52 s"], &["kernels    3 ms"]));
    assert!(!shows(&["events     5"], &["events     6"]));
    assert!(!shows(&["a", "..."], &["b", "c"]));
    assert!(!shows(&["a"], &["a", "b"]));
    assert!(!shows(&["a", "b"], &["a"]));
}

mod full {
    use super::*;
    use crate::golden;

    /// With `WARPTRACE_OVERWRITE_GOLDEN=1`, the trace is written instead of compared.
    #[test]
    fn the_trace_of_the_readme_is_what_is_recorded() {
        if !golden::overwrites() && !golden::can_be_compared() {
            return;
        }
        let folder = Folder::new();
        let printed = ran(&["demo", "-o", "demo.wtrc", "--device", "sim", "--memory", "1GiB"], &folder);
        let trace = golden::without_host(&std::fs::read(folder.at("demo.wtrc")).unwrap());
        let text = Path::new(DEMO).with_extension("txt");
        if golden::overwrites() {
            std::fs::write(DEMO, trace).unwrap();
            std::fs::write(text, printed).unwrap();
            return;
        }
        let kept = std::fs::read_to_string(text).unwrap();
        assert!(kept.lines().map(comparable).eq(printed.lines().map(comparable)), "{printed}");
        assert!(std::fs::read(DEMO).unwrap() == trace, "another trace is recorded");
    }
}
