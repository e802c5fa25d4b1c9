//! Pages of the documentation show what the tool prints.
//!
//! In a block of `console`, each line `$ warptrace ...` or `$ warptrace-bench ...` is a command, and what
//! follows is what it prints. A line `...` stands for any lines. Times and lengths of files are not
//! compared, and neither is what a command prints of which nothing is shown. Recordings are made on the
//! simulator.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use warptrace_build::Compiler;

use crate::support::{Folder, bench, text, tool};

/// The pages, and how many outputs each shows at least.
const PAGES: [(&str, usize); 3] =
    [("README.md", 3), ("docs/users/tour.md", 8), ("docs/reference/answers.md", 8)];
const BLOCK: &str = "```console\n";
const COMMANDS: [&str; 2] = ["$ warptrace ", "$ warptrace-bench "];
/// Lines with times, or with what depends on the machine: its name and its processes' numbers are in a file,
/// which has another length for that.
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

/// What commands have printed. Pages show some of the same ones, and need each other's files.
struct Shell {
    folder: Folder,
    printed: HashMap<String, String>,
}

impl Shell {
    /// Runs a line without its `$ `; returns what it prints on standard output.
    fn run(&mut self, line: &str) -> String {
        if let Some(printed) = self.printed.get(line) {
            return printed.clone();
        }
        let (command, head) = match line.split_once(" | head -") {
            Some((command, count)) => (command, count.parse().unwrap()),
            None => (line, usize::MAX),
        };
        let mut arguments: Vec<&str> =
            command.split_whitespace().map(|word| word.trim_matches('\'')).collect();
        if ["demo", "record"].contains(&arguments[1]) && !command.contains("--device") {
            // The pages were written without a GPU, and with the default limit of a large machine.
            arguments.extend(["--device", "sim", "--memory", "1GiB"]);
        }
        let folder = text(&self.folder.at("")).to_owned();
        let printed = match arguments[0] {
            "warptrace-bench" => {
                // It runs in this process, whose folder is another.
                let file = arguments.iter().position(|word| *word == "-o").unwrap() + 1;
                let path = format!("{folder}{}", arguments[file]);
                arguments[file] = &path;
                let (code, printed, errors) = bench(&arguments[1..]);
                assert_eq!(code, 0, "{line}: {errors}");
                printed
            }
            _ => {
                let output = tool().current_dir(self.folder.at("")).args(&arguments[1..]).output().unwrap();
                assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
                String::from_utf8(output.stdout).unwrap()
            }
        };
        let printed = printed.replace(&folder, "");
        // Tables are padded to their width.
        let printed: String =
            printed.lines().take(head).map(|line| format!("{}\n", line.trim_end())).collect();
        self.printed.insert(line.to_owned(), printed.clone());
        printed
    }
}

/// A line as it is compared: of one that differs from run to run its name alone.
fn comparable(line: &str) -> &str {
    OTHERS.into_iter().find(|name| line.starts_with(name)).unwrap_or(line)
}

/// Whether `shown` is `printed`, where a line `...` stands for any lines. Both end at the same line.
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

/// A block as it should be, and how many outputs it shows.
///
/// # Errors
/// The command whose output is not what is shown, with what it prints, if that cannot be put into the page: a
/// line `...` was chosen by a person.
fn current(block: &str, shell: &mut Shell) -> Result<(String, usize), String> {
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
        let printed = shell.run(line);
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

/// Whether the device compiler is the one whose figures pages have: slots are of instructions, of which
/// another one makes others. Says why not.
pub(crate) fn has_compiler_of_pages() -> bool {
    let hashes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/programs/tests/ptx/hashes.txt");
    let hashes = std::fs::read_to_string(hashes).unwrap();
    let of = hashes.lines().next().and_then(|line| line.strip_prefix("# compiled by ")).unwrap();
    let compiler = Compiler::find().map_or_else(|error| error.to_string(), |compiler| compiler.version);
    if of != compiler {
        eprintln!("skipped: the pages have figures of PTX of {of}, this is: {compiler}");
    }
    of == compiler
}

/// With `WARPTRACE_OVERWRITE_PAGE=1` the pages are written instead of compared.
#[test]
fn the_pages_show_what_the_tool_prints() {
    let overwrites = std::env::var_os("WARPTRACE_OVERWRITE_PAGE").is_some_and(|value| value == "1");
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !overwrites && !has_compiler_of_pages() {
        return;
    }
    let mut shell = Shell { folder: Folder::new(), printed: HashMap::new() };
    for (page, least) in PAGES {
        let old = std::fs::read_to_string(root.join(page)).unwrap();
        let mut parts = old.split(BLOCK);
        let mut new = parts.next().unwrap().to_owned();
        let mut shown = 0;
        for part in parts {
            let (block, rest) = part.split_once("```").unwrap();
            let (text, outputs) =
                current(block, &mut shell).unwrap_or_else(|wrong| panic!("{page}: {wrong}"));
            new += &format!("{BLOCK}{text}```{rest}");
            shown += outputs;
        }
        assert!(shown >= least, "{page} shows {shown} outputs");
        if overwrites {
            std::fs::write(root.join(page), new).unwrap();
            continue;
        }
        for (line, (old, new)) in (1..).zip(old.lines().zip(new.lines())) {
            assert_eq!(old, new, "{page}:{line}; CONTRIBUTING.md says how to write the page anew");
        }
        assert_eq!(old, new, "{page}");
    }
}

/// The code of README.md is that of the example, which is built and run by
/// `tracer-host/warptrace/tests/example.rs`.
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
