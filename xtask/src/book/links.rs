//! Links between the pages of the repository.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use anyhow::Context;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A page: what it links, and what can be linked in it.
pub(super) struct Page {
    /// The first heading.
    pub(super) title: Option<String>,
    /// Each link with its line.
    pub(super) links: Vec<(usize, String)>,
    /// Ids of the headings, as GitHub and mdBook make them.
    pub(super) anchors: BTreeSet<String>,
}

impl Page {
    /// Reads a page's links and headings.
    pub(super) fn read(text: &str) -> Self {
        let mut page = Self { title: None, links: Vec::new(), anchors: BTreeSet::new() };
        let mut heading: Option<String> = None;
        let mut seen: HashMap<String, usize> = HashMap::new();
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let line = 1 + text[..range.start].matches('\n').count();
                    page.links.push((line, dest_url.into_string()));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::Text(words) | Event::Code(words) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                }
                Event::End(TagEnd::Heading(_)) => {
                    let words = heading.take().unwrap_or_default();
                    let anchor = anchor(&words);
                    let count = seen.entry(anchor.clone()).or_default();
                    page.anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
                    *count += 1;
                    page.title.get_or_insert(words);
                }
                _ => {}
            }
        }
        page
    }
}

/// The id of a heading: lower case, hyphens for spaces, and nothing else but letters, digits, `-` and `_`.
fn anchor(heading: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter(kept)
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// Whether `link` leads out of the repository.
pub(super) fn is_external(link: &str) -> bool {
    link.split_once(':')
        .is_some_and(|(scheme, _)| scheme.chars().all(|letter| letter.is_ascii_alphanumeric()))
}

/// The path in the repository to which `link` leads from the file `from`, and the heading there; an empty
/// path is the file itself. `None` if it leads out of the repository's folder.
pub(super) fn target(from: &str, link: &str) -> Option<(String, Option<String>)> {
    let (path, anchor) = match link.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_owned())),
        None => (link, None),
    };
    if path.is_empty() {
        return Some((from.to_owned(), anchor));
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some((parts.join("/"), anchor))
}

/// Reads all pages among `files`, which are relative to `root`.
///
/// # Errors
/// If a page cannot be read.
pub(super) fn pages(root: &Path, files: &BTreeSet<String>) -> anyhow::Result<BTreeMap<String, Page>> {
    let mut pages = BTreeMap::new();
    for file in files.iter().filter(|file| file.ends_with(".md")) {
        let text = std::fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        pages.insert(file.clone(), Page::read(&text));
    }
    Ok(pages)
}

/// Names the links that lead nowhere, with file and line.
///
/// # Errors
/// If a page cannot be read.
pub(super) fn check(root: &Path, files: &BTreeSet<String>) -> anyhow::Result<Vec<String>> {
    let pages = pages(root, files)?;
    let mut faults = Vec::new();
    for (file, page) in &pages {
        for (line, link) in page.links.iter().filter(|(_, link)| !is_external(link)) {
            if let Some(fault) = fault(file, link, files, &pages) {
                faults.push(format!("{file}:{line}: ({link}) {fault}"));
            }
        }
    }
    Ok(faults)
}

/// Files other than pages in which paths of pages stand, such as comments and tests that read a page.
const SOURCES: [&str; 5] = [".rs", ".py", ".sh", ".sql", ".html"];
/// The files of this folder make up pages in their tests.
const MADE_UP: &str = "xtask/src/book/";

/// Names the pages of `docs/` that sources name and that are not there, with file and line.
///
/// # Errors
/// If a source cannot be read.
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

/// The paths of pages below `docs/` that a line names.
fn named_pages(line: &str) -> impl Iterator<Item = String> {
    line.split("docs/").skip(1).filter_map(|rest| {
        let end =
            rest.find(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '/' | '-' | '_'));
        let (path, behind) = rest.split_at(end.unwrap_or(rest.len()));
        behind.starts_with(".md").then(|| format!("docs/{path}.md"))
    })
}

/// What is wrong with a link, if anything.
fn fault(file: &str, link: &str, files: &BTreeSet<String>, pages: &BTreeMap<String, Page>) -> Option<String> {
    let Some((path, anchor)) = target(file, link) else {
        return Some("leads out of the repository".to_owned());
    };
    if !files.contains(&path) {
        let folder = format!("{path}/");
        let is_folder = path.is_empty() || files.iter().any(|file| file.starts_with(&folder));
        return Some(if is_folder {
            "is a folder: link a file in it, since a book has no view of folders".to_owned()
        } else {
            format!("there is no {path} in the repository")
        });
    }
    let anchor = anchor?;
    match pages.get(&path) {
        Some(page) if page.anchors.contains(&anchor) => None,
        Some(_) => Some(format!("{path} has no heading with the id {anchor}")),
        None => Some(format!("{path} is no page and has no headings")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# The `raw` codec\n\n[a](../b.md#what-does---policy-ring-change) `[no](link)`\n\n\
        ## What does `--policy ring` change?\n\n## Limits\n\n| ![i](i.png) |\n| --- |\n\n## Limits\n\n\
        ```\n[no](x)\n```\n";

    #[test]
    fn links_and_headings_are_read() {
        let page = Page::read(PAGE);
        assert_eq!(page.title.as_deref(), Some("The raw codec"));
        let links: Vec<_> = page.links.iter().map(|(line, link)| (*line, link.as_str())).collect();
        assert_eq!(links, [(3, "../b.md#what-does---policy-ring-change"), (9, "i.png")]);
        let anchors: Vec<_> = page.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["limits", "limits-1", "the-raw-codec", "what-does---policy-ring-change"]);
    }

    #[test]
    fn each_wrong_link_is_named() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let root = folder.path();
        std::fs::create_dir(root.join("d")).expect("a folder can be made");
        let good =
            "# One\n\n[own](#one) [other](../b.md#two) [file](../f.rs) [far](https://example.org/none.md)\n";
        let bad = "# Two\n\n[a](gone.md)\n[b](d/a.md#gone)\n[c](d)\n[e](../out.md)\n[f](f.rs#x)\n";
        for (file, text) in [("d/a.md", good), ("b.md", bad), ("f.rs", "")] {
            std::fs::write(root.join(file), text).expect("a file can be written");
        }
        let files = ["d/a.md", "b.md", "f.rs"].map(str::to_owned).into();
        let faults = check(root, &files).expect("the pages can be read");
        let expected = [
            "b.md:3: (gone.md) there is no gone.md in the repository",
            "b.md:4: (d/a.md#gone) d/a.md has no heading with the id gone",
            "b.md:5: (d) is a folder: link a file in it, since a book has no view of folders",
            "b.md:6: (../out.md) leads out of the repository",
            "b.md:7: (f.rs#x) f.rs is no page and has no headings",
        ];
        assert_eq!(faults, expected);
    }

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
