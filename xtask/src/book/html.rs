//! Links of the built book, as a browser follows them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;

use super::links;

/// Names the links between files of `folder` that lead nowhere.
///
/// # Errors
/// If a file of the book cannot be read.
pub(super) fn check(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = BTreeSet::new();
    list(folder, "", &mut files)?;
    let mut pages = BTreeMap::new();
    for file in files.iter().filter(|file| file.ends_with(".html")) {
        let text =
            std::fs::read_to_string(folder.join(file)).with_context(|| format!("cannot read {file}"))?;
        pages.insert(file.as_str(), text);
    }
    let ids: BTreeMap<&str, BTreeSet<&str>> =
        pages.iter().map(|(file, text)| (*file, values(text, "id").collect())).collect();
    let mut faults = BTreeSet::new();
    for (file, text) in &pages {
        // The page for addresses that are not there has links of the place that it is served from.
        if *file == "404.html" {
            continue;
        }
        for link in values(text, "href").chain(values(text, "src")).filter(|link| !links::is_external(link)) {
            let link = link.replace("&amp;", "&");
            let there = links::target(file, &link).is_some_and(|(path, anchor)| {
                let anchor = anchor.filter(|anchor| !anchor.is_empty());
                files.contains(&path)
                    && anchor.is_none_or(|anchor| {
                        ids.get(path.as_str()).is_some_and(|ids| ids.contains(anchor.as_str()))
                    })
            });
            if !there {
                faults.insert(format!("{file}: {link}"));
            }
        }
    }
    Ok(faults.into_iter().collect())
}

/// Adds the files of `folder` and of the folders in it; `below` is its path and a slash, or nothing.
fn list(folder: &Path, below: &str, files: &mut BTreeSet<String>) -> anyhow::Result<()> {
    let context = || format!("cannot list {}", folder.display());
    for entry in std::fs::read_dir(folder).with_context(context)? {
        let entry = entry.with_context(context)?;
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.file_type().with_context(context)?.is_dir() {
            list(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.insert(name);
        }
    }
    Ok(())
}

/// The values of an attribute, as mdBook writes it: in double quotes, behind a space.
fn values<'a>(html: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let opening = format!(" {attribute}=\"");
    let parts: Vec<&str> = html.split(opening.as_str()).skip(1).collect();
    parts.into_iter().filter_map(|part| part.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_and_ids_that_are_not_there_are_named() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        std::fs::create_dir(folder.path().join("d")).expect("a folder can be made");
        let one = r##"<a href="d/two.html#x"> <a href="d/two.html#y"> <a href="https://a.b/c"> <img src="no.png">"##;
        let two = r##"<p id="x"><a href="../one.html">, <a href="#x">, <a href="../../one.html">"##;
        std::fs::write(folder.path().join("one.html"), one).expect("a file can be written");
        std::fs::write(folder.path().join("d/two.html"), two).expect("a file can be written");
        let faults = check(folder.path()).expect("the pages can be read");
        assert_eq!(faults, ["d/two.html: ../../one.html", "one.html: d/two.html#y", "one.html: no.png"]);
    }
}
