//! Copies the book's pages into one folder, as mdBook wants them.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use super::links::{self, Page};

/// Table of contents, with links as they are in `docs/`.
const SUMMARY: &str = "docs/SUMMARY.md";
/// mdBook's settings, and a file of styles that they name.
const SETTINGS: [&str; 2] = ["docs/book.toml", "docs/book.css"];
/// Pages of this folder need no line in the table of contents: they are listed behind all others.
const RESULTS: &str = "results/";

/// Makes `folder` a book of mdBook: settings, a table of contents, and all pages at the paths that they have
/// below
/// `root`, with the files that they link. `files` are those of the repository.
///
/// # Errors
/// If a page of `docs/` is in no chapter, a chapter is no page, or a file cannot be copied.
pub(super) fn stage(root: &Path, files: &BTreeSet<String>, folder: &Path) -> anyhow::Result<()> {
    let pages = links::pages(root, files)?;
    let summary = pages.get(SUMMARY).with_context(|| format!("there is no {SUMMARY}"))?;
    let chapters: BTreeSet<String> = summary
        .links
        .iter()
        .filter_map(|(_, link)| links::target(SUMMARY, link))
        .map(|(path, _)| path)
        .collect();
    for chapter in &chapters {
        if !pages.contains_key(chapter) {
            bail!("{SUMMARY} names {chapter}, which is no page");
        }
    }
    for page in pages.keys().filter(|page| page.starts_with("docs/") && *page != SUMMARY) {
        if !chapters.contains(page) {
            bail!("{page} is in no chapter: add it to {SUMMARY}");
        }
    }
    let results: Vec<(&String, &Page)> =
        pages.iter().filter(|(page, _)| page.starts_with(RESULTS) && !chapters.contains(*page)).collect();

    let source = folder.join("src");
    fs::create_dir_all(&source).with_context(|| format!("cannot make {}", source.display()))?;
    let text = fs::read_to_string(root.join(SUMMARY)).with_context(|| format!("cannot read {SUMMARY}"))?;
    write(&source.join("SUMMARY.md"), &table_of_contents(&text, &results))?;
    for file in SETTINGS {
        copy(&root.join(file), &folder.join(file.trim_start_matches("docs/")))?;
    }
    let mut wanted: BTreeSet<String> = chapters;
    wanted.extend(results.iter().map(|(page, _)| (*page).clone()));
    let linked: Vec<String> = wanted
        .iter()
        .flat_map(|page| pages[page].links.iter().map(move |(_, link)| (page, link)))
        .filter(|(_, link)| !links::is_external(link))
        .filter_map(|(page, link)| links::target(page, link))
        .map(|(path, _)| path)
        .collect();
    wanted.extend(linked);
    for file in wanted.iter().filter(|file| files.contains(*file)) {
        copy(&root.join(file), &source.join(file))?;
    }
    Ok(())
}

/// `docs/SUMMARY.md` with paths from the root, and with the pages of results at its end.
fn table_of_contents(text: &str, results: &[(&String, &Page)]) -> String {
    let mut table = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("](") {
        let (link, after) = link.split_once(')').unwrap_or((link, ""));
        let path = links::target(SUMMARY, link).map_or_else(|| link.to_owned(), |(path, _)| path);
        let _ = write!(table, "{before}]({path})");
        rest = after;
    }
    table.push_str(rest);
    for (path, page) in results {
        let title = page.title.as_deref().unwrap_or(path).replace(['[', ']'], "");
        // Titles repeat from folder to folder.
        let below = path.trim_start_matches(RESULTS).rsplit_once('/').map_or("", |(folder, _)| folder);
        let shown = if below.is_empty() { title } else { format!("{title} ({below})") };
        let _ = writeln!(table, "- [{shown}]({path})");
    }
    table
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
        let page = Page::read("# Times of [all]\n");
        let (one, two) = ("results/a.md".to_owned(), "results/card/b.md".to_owned());
        let found = table_of_contents(
            "[x](../README.md)\n\n# Users\n\n- [y](users/y.md)\n",
            &[(&one, &page), (&two, &page)],
        );
        assert_eq!(
            found,
            "[x](README.md)\n\n# Users\n\n- [y](docs/users/y.md)\n- [Times of all](results/a.md)\n\
             - [Times of all (card)](results/card/b.md)\n"
        );
    }

    #[test]
    fn a_page_without_a_chapter_is_refused() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("docs")).expect("a folder can be made");
        for (file, text) in [(SUMMARY, "# Contents\n"), ("docs/page.md", "# Page\n")] {
            fs::write(root.join(file), text).expect("a file can be written");
        }
        let files = [SUMMARY, "docs/page.md"].map(str::to_owned).into();
        let error = stage(&root, &files, &folder.path().join("book")).expect_err("the page is in no chapter");
        assert_eq!(error.to_string(), "docs/page.md is in no chapter: add it to docs/SUMMARY.md");
    }
}
