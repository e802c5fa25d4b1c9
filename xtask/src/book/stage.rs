//! Copies the pages of the book into the folder for mdBook.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use super::links;
use crate::workspace;

/// Table of contents, with links relative to `docs/`.
const SUMMARY: &str = "docs/SUMMARY.md";
/// Settings of mdBook, and the style sheet that they name.
const SETTINGS: [&str; 2] = ["docs/book.toml", "docs/book.css"];
/// Pages of this folder need no line in the table of contents. They are listed after all others.
const RESULTS: &str = "results/";

/// Turns `folder` into an mdBook book: settings, table of contents, and all pages with the files that they
/// link, at their paths in the repository. `files` are the repository's. Fails if a page is in no chapter.
pub(super) fn stage(files: &BTreeSet<String>, folder: &Path) -> anyhow::Result<()> {
    let root = workspace::root();
    let mut wanted = links::linked([SUMMARY])?;
    check_chapters(files, &wanted)?;
    let is_result = |file: &&String| file.starts_with(RESULTS) && file.ends_with(".md");
    let results: Vec<&String> =
        files.iter().filter(is_result).filter(|page| !wanted.contains(*page)).collect();
    let source = folder.join("src");
    fs::create_dir_all(&source).with_context(|| format!("cannot make {}", source.display()))?;
    let mut table = table_of_contents(&read(SUMMARY)?);
    for path in &results {
        let text = read(path)?;
        let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(path);
        table += &result_line(path, title);
    }
    write(&source.join("SUMMARY.md"), &table)?;
    for file in SETTINGS {
        copy(&root.join(file), &folder.join(file.trim_start_matches("docs/")))?;
    }
    wanted.extend(results.into_iter().cloned());
    let linked = links::linked(&wanted)?;
    for file in wanted.union(&linked).filter(|file| files.contains(*file)) {
        copy(&root.join(file), &source.join(file))?;
    }
    Ok(())
}

fn check_chapters(files: &BTreeSet<String>, chapters: &BTreeSet<String>) -> anyhow::Result<()> {
    let is_page = |file: &&String| file.starts_with("docs/") && file.ends_with(".md") && *file != SUMMARY;
    match files.iter().filter(is_page).find(|page| !chapters.contains(*page)) {
        Some(page) => bail!("{page} is in no chapter: add it to {SUMMARY}"),
        None => Ok(()),
    }
}

/// Returns `docs/SUMMARY.md` with paths relative to the root.
fn table_of_contents(text: &str) -> String {
    text.replace("](", "](docs/").replace("](docs/../", "](")
}

fn result_line(path: &str, title: &str) -> String {
    let title = title.replace(['[', ']', '`'], "");
    // Titles may be equal in different folders.
    let below = path.trim_start_matches(RESULTS).rsplit_once('/').map_or("", |(folder, _)| folder);
    let shown = if below.is_empty() { title } else { format!("{title} ({below})") };
    format!("- [{shown}]({path})\n")
}

fn read(file: &str) -> anyhow::Result<String> {
    fs::read_to_string(workspace::root().join(file)).with_context(|| format!("cannot read {file}"))
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder)
        .and_then(|()| fs::copy(from, to))
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_contents_has_paths_from_the_root_and_all_results() {
        let found = table_of_contents("[x](../README.md)\n\n# Users\n\n- [y](users/y.md)\n");
        assert_eq!(found, "[x](README.md)\n\n# Users\n\n- [y](docs/users/y.md)\n");
        assert_eq!(result_line("results/a.md", "Times of [all]"), "- [Times of all](results/a.md)\n");
        assert_eq!(result_line("results/card/b.md", "B"), "- [B (card)](results/card/b.md)\n");
    }

    #[test]
    fn a_page_without_a_chapter_is_refused() {
        let files = [SUMMARY, "docs/page.md", "docs/a.md"].map(str::to_owned).into();
        let error =
            check_chapters(&files, &["docs/a.md".to_owned()].into()).expect_err("it is in no chapter");
        assert_eq!(error.to_string(), "docs/page.md is in no chapter: add it to docs/SUMMARY.md");
    }
}
