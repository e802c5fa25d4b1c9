//! Counts hard-to-read phrases in prose: pages of Markdown, and comment lines of sources.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context;
use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use crate::workspace;

const PATTERNS: &str = include_str!("patterns.txt");
/// Hits listed for each folder above its limit.
const LISTED: usize = 20;
/// Endings of files with prose, and the mark of their comment lines. Markdown has no mark.
const KINDS: [(&str, &str); 10] = [
    (".rs", "//"),
    (".md", ""),
    (".py", "#"),
    (".sh", "#"),
    (".toml", "#"),
    (".c", "//"),
    (".h", "//"),
    (".cu", "//"),
    (".cuh", "//"),
    (".js", "//"),
];

struct Patterns {
    /// All patterns without their exceptions. Most lines match none, which the set finds in one pass.
    set: RegexSet,
    each: Vec<Pattern>,
}

struct Pattern {
    name: &'static str,
    regex: Regex,
    /// Drops a match if it also matches at the start of the match.
    exception: Option<Regex>,
}

impl Pattern {
    fn is_in(&self, line: &str) -> bool {
        let line = line.as_bytes();
        let is_dropped = |start| self.exception.as_ref().is_some_and(|regex| regex.is_match(&line[start..]));
        self.regex.find_iter(line).any(|found| !is_dropped(found.start()))
    }
}

pub(super) struct Hit {
    file: String,
    line: usize,
    pattern: &'static str,
    text: String,
}

impl Hit {
    /// Returns the first two components of the path, or `.` for a file in the root.
    fn folder(&self) -> &str {
        match self.file.match_indices('/').nth(1) {
            Some((end, _)) => &self.file[..end],
            None if self.file.contains('/') => &self.file,
            None => ".",
        }
    }
}

/// Finds the hits in all files of the repository outside `results/`.
pub(super) fn find_all() -> anyhow::Result<Vec<Hit>> {
    let patterns = parse(PATTERNS)?;
    let mut hits = Vec::new();
    for name in workspace::files()?.iter().filter(|name| !name.starts_with("results/")) {
        if let Some(mark) = comment_mark(name) {
            let bytes =
                fs::read(workspace::root().join(name)).with_context(|| format!("cannot read {name}"))?;
            hits.extend(find(&patterns, name, mark, &String::from_utf8_lossy(&bytes)));
        }
    }
    Ok(hits)
}

/// Reads patterns with their exceptions.
fn parse(text: &'static str) -> anyhow::Result<Patterns> {
    let mut each: Vec<Pattern> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fault = || format!("patterns.txt: cannot read `{line}`");
        let (name, expression) = line.split_once(' ').with_context(fault)?;
        let mut builder = RegexBuilder::new(expression.trim());
        let regex = builder.unicode(false).case_insensitive(true).build().with_context(fault)?;
        if name == "!" {
            each.last_mut().with_context(fault)?.exception = Some(regex);
        } else {
            each.push(Pattern { name, regex, exception: None });
        }
    }
    let mut builder = RegexSetBuilder::new(each.iter().map(|pattern| pattern.regex.as_str()));
    let set = builder.unicode(false).case_insensitive(true).build()?;
    Ok(Patterns { set, each })
}

/// Returns the mark of comment lines in a file, or `None` for a file without prose.
fn comment_mark(file: &str) -> Option<&'static str> {
    KINDS.iter().find(|(ending, _)| file.ends_with(ending)).map(|(_, mark)| *mark)
}

/// Finds the hits in one file. Ignores fenced code in Markdown and code outside comment lines in other files.
fn find(patterns: &Patterns, file: &str, mark: &str, text: &str) -> Vec<Hit> {
    let mut hits = Vec::new();
    let mut is_fenced = false;
    for (line, text) in text.lines().map(str::trim).enumerate() {
        if mark.is_empty() && text.starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced && text.starts_with(mark) && patterns.set.is_match(text.as_bytes()) {
            let found = patterns.each.iter().filter(|pattern| pattern.is_in(text));
            hits.extend(found.map(|pattern| Hit {
                file: file.to_owned(),
                line: line + 1,
                pattern: pattern.name,
                text: text.to_owned(),
            }));
        }
    }
    hits
}

/// Describes the folders with more hits than their limit. The limit of a folder that `limits` lacks is 0.
pub(super) fn exceeded(limits: &BTreeMap<String, u64>, hits: &[Hit]) -> Option<String> {
    let mut folders: BTreeMap<&str, Vec<&Hit>> = BTreeMap::new();
    for hit in hits {
        folders.entry(hit.folder()).or_default().push(hit);
    }
    let (mut counts, mut lines) = (Vec::new(), String::new());
    for (folder, hits) in folders {
        let limit = limits.get(folder).copied().unwrap_or(0);
        if hits.len() as u64 <= limit {
            continue;
        }
        counts.push(format!("{folder} has {} (limit {limit})", hits.len()));
        for Hit { file, line, pattern, text } in hits.iter().take(LISTED) {
            lines += &format!("\n{file}:{line}: [{pattern}] {text}");
        }
        if hits.len() > LISTED {
            lines += &format!("\n... and {} more in {folder}", hits.len() - LISTED);
        }
    }
    let counts = (!counts.is_empty()).then(|| counts.join(", "))?;
    Some(format!("hard-to-read phrases: {counts}: write the sentences again, see CONTRIBUTING.md{lines}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str) -> Vec<(usize, &'static str)> {
        let patterns = parse(PATTERNS).expect("the patterns are valid");
        let mark = comment_mark(file).expect("the file has prose");
        find(&patterns, file, mark, text).iter().map(|hit| (hit.line, hit.pattern)).collect()
    }

    fn hits(file: &str, count: usize) -> Vec<Hit> {
        let hit =
            |line| Hit { file: file.to_owned(), line, pattern: "beside", text: "// beside it".to_owned() };
        (1..=count).map(hit).collect()
    }

    #[test]
    fn comments_in_each_kind_of_file_are_prose() {
        for (ending, mark) in KINDS {
            let text = format!("\n  {mark} warps, of which one waits\n");
            assert_eq!(found(&format!("cli/a{ending}"), &text), [(2, "of-which")], "{ending}");
        }
        for file in ["Cargo.lock", "a.json", "a.txt", "LICENSE-MIT"] {
            assert_eq!(comment_mark(file), None, "{file}");
        }
    }

    #[test]
    fn code_and_strings_are_no_prose() {
        assert_eq!(found("a.rs", "let beside = \"// beside\"; // beside\n#[beside]\n"), []);
        assert_eq!(found("a.c", "# beside\n* beside\n"), []);
        assert_eq!(found("a.py", "print('beside')\n// beside\n"), []);
        let page = "beside\n```sh\n# beside\n```\n- a list\n\n  ```c\n  // beside\n  ```\n  beside\n";
        assert_eq!(found("a.md", page), [(1, "beside"), (10, "beside")]);
    }

    #[test]
    fn a_line_counts_once_for_each_pattern() {
        assert_eq!(found("a.md", "Beside it and beside that of B"), [(1, "that-of"), (1, "beside")]);
    }

    #[test]
    fn exceptions_drop_only_their_own_match() {
        assert_eq!(found("a.md", "Is there a trace? If there is not there an end."), []);
        assert_eq!(found("a.md", "Is there a trace that was there before?"), [(1, "is-there")]);
        assert_eq!(found("a.rs", "/// What is a warp?"), []);
        assert_eq!(found("a.rs", "/// What is a warp. What a lane does"), [(1, "what-clause")]);
        assert_eq!(found("a.rs", "/// Says what a lane does."), []);
    }

    #[test]
    fn a_folder_fails_above_its_limit_only() {
        let limits = BTreeMap::from([("docs/users".to_owned(), 2)]);
        assert_eq!(exceeded(&limits, &hits("docs/users/tour.md", 2)), None);
        let fault = exceeded(&limits, &hits("docs/users/tour.md", 3)).expect("the limit is passed");
        let mut lines = fault.lines();
        let first = lines.next().expect("it has a summary");
        assert!(first.contains("docs/users has 3 (limit 2): write"), "{first}");
        assert_eq!(lines.next(), Some("docs/users/tour.md:1: [beside] // beside it"));
        assert_eq!(lines.count(), 2);
    }

    #[test]
    fn a_folder_without_a_limit_may_have_no_hit() {
        let none = BTreeMap::new();
        assert_eq!(exceeded(&none, &[]), None);
        for (file, folder) in
            [("README.md", "."), ("fuzz/README.md", "fuzz/README.md"), ("a/b/c/d.rs", "a/b")]
        {
            let fault = exceeded(&none, &hits(file, LISTED + 5)).expect("the limit is passed");
            assert!(fault.contains(&format!("{folder} has 25 (limit 0)")), "{fault}");
            assert!(fault.ends_with(&format!("... and 5 more in {folder}")), "{fault}");
        }
    }
}
