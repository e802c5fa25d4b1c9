//! Resolves file arguments: files, folders, patterns and URLs.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::output::{shown_name, url_of};

const EXTENSION: &str = "wtrc";

/// Returns the files and URLs that the arguments name, in their order. A folder expands to its `*.wtrc`
/// files. A pattern such as `traces/*.wtrc` expands to the matching files, unless a file has that name. Files
/// of a folder or pattern are sorted by name; numbers in names compare by value.
///
/// # Errors
/// If a folder or pattern has no trace or cannot be read, or if a file is named twice (it would count twice).
pub(crate) fn named_files(arguments: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for path in arguments {
        if let Some(url) = url_of(path) {
            files.extend(of_url(url)?);
            continue;
        }
        let pattern = path.to_str().filter(|text| text.contains(['*', '?', '[']));
        let mut found = if path.is_dir() {
            of_folder(path)?
        } else if let Some(pattern) = pattern.filter(|_| !path.exists()) {
            of_pattern(pattern)?
        } else {
            vec![path.clone()]
        };
        sort(&mut found);
        files.extend(found);
    }
    let mut seen: Vec<(PathBuf, &PathBuf)> =
        files.iter().map(|path| (path.canonicalize().unwrap_or_else(|_| path.clone()), path)).collect();
    seen.sort();
    if let Some([(_, first), (_, second)]) = seen.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        match first == second {
            true => bail!("{} is named twice: name each trace once", shown_name(first)),
            false => {
                bail!("{} and {} are one file: name each trace once", shown_name(first), shown_name(second))
            }
        }
    }
    Ok(files)
}

fn sort(paths: &mut [PathBuf]) {
    paths.sort_by_cached_key(|path| in_order(&path.to_string_lossy()));
}

/// Returns the objects that a URL names: the `*.wtrc` objects if it ends in `/`, or those that match a last
/// part with `*`.
fn of_url(url: &str) -> anyhow::Result<Vec<PathBuf>> {
    let has_buckets = warptrace_store::scheme(url).is_some_and(warptrace_store::Scheme::has_buckets);
    // The query of a web server's URL is not part of the name.
    let name = if has_buckets { url } else { url.split(['?', '#']).next().unwrap_or(url) };
    let (folder, last) = name.split_at(name.rfind('/').map_or(0, |at| at + 1));
    let pattern = match last {
        "" => format!("*.{EXTENSION}"),
        last if last.contains('*') => last.to_owned(),
        _ => return Ok(vec![url.into()]),
    };
    let shown = || shown_name(url);
    if folder.contains('*') {
        bail!("{}: only the last part of a URL may be a pattern", shown());
    }
    let fits = glob::Pattern::new(&pattern).with_context(|| format!("{} is no pattern", shown()))?;
    let listed = warptrace_store::list(folder)?.into_iter();
    let mut found: Vec<PathBuf> = listed
        .filter(|url| url.strip_prefix(folder).is_some_and(|name| fits.matches(name)))
        .map(PathBuf::from)
        .collect();
    if found.is_empty() {
        bail!("{folder} has no object {pattern}: name the traces", folder = shown_name(folder));
    }
    sort(&mut found);
    Ok(found)
}

fn of_folder(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let reading = || format!("cannot read the folder {}", shown_name(folder));
    let mut found = Vec::new();
    for entry in folder.read_dir().with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            found.push(path);
        }
    }
    if found.is_empty() {
        bail!("the folder {} has no file *.{EXTENSION}: name the traces", shown_name(folder));
    }
    Ok(found)
}

fn of_pattern(pattern: &str) -> anyhow::Result<Vec<PathBuf>> {
    let shown = || shown_name(Path::new(pattern));
    let paths = glob::glob(pattern).with_context(|| format!("{} is no file, nor a pattern", shown()))?;
    let found: Vec<PathBuf> =
        paths.collect::<Result<_, _>>().with_context(|| format!("cannot look for {}", shown()))?;
    if found.is_empty() {
        bail!("no file fits {}", shown());
    }
    Ok(found)
}

/// Returns the file names relative to the innermost folder that contains all files.
pub(crate) fn short_names(files: &[PathBuf]) -> Vec<String> {
    // Secrets are removed from URLs before the URLs are cut.
    let files: Vec<PathBuf> = files
        .iter()
        .map(|path| match url_of(path) {
            Some(_) => shown_name(path).into(),
            None => path.clone(),
        })
        .collect();
    let mut common = files.first().and_then(|first| first.parent()).unwrap_or(Path::new(""));
    while !files.iter().all(|path| path.starts_with(common)) {
        common = common.parent().unwrap_or(Path::new(""));
    }
    files.iter().map(|path| shown_name(path.strip_prefix(common).unwrap_or(path))).collect()
}

/// Returns a sort key that compares numbers in a text by value: `t.2` sorts before `t.10`.
pub(crate) fn in_order(text: &str) -> Vec<(usize, String)> {
    let is_digit = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    let mut parts: Vec<String> = Vec::new();
    for letter in text.chars() {
        match parts.last_mut() {
            Some(last) if is_digit(last) == letter.is_ascii_digit() => last.push(letter),
            _ => parts.push(letter.to_string()),
        }
    }
    // Numbers with more digits are larger. All other parts get the length 0.
    let key = |part: String| match is_digit(&part) {
        true => {
            let digits = part.trim_start_matches('0');
            (digits.len(), digits.to_owned())
        }
        false => (0, part),
    };
    parts.into_iter().map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_in_order_of_their_values() {
        let mut names = ["t.10.w", "t.9.w", "s", "t.009.w", "t.a.w", "t.11"];
        names.sort_by_key(|name| in_order(name));
        assert_eq!(names, ["s", "t.9.w", "t.009.w", "t.10.w", "t.11", "t.a.w"]);
    }
}
