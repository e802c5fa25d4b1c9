//! Finds the source files that a table of locations names.

use std::io::Read;
use std::path::{Component, Path, PathBuf};

use warptrace_decoder::TraceFile;
use warptrace_format::location::{SOURCE_HASH_PREFIX, source_hash};

/// Largest source file that is read.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Most parts of a path that is looked for; real ones have fewer.
const MAX_PARTS: usize = 64;

/// A source that a trace names, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceCode {
    /// Its lines; tabs are four spaces.
    pub lines: Vec<String>,
    /// Whether it is known to be another one than was compiled.
    pub has_changed: bool,
}

/// Reads a source that a trace names: the text that the trace itself keeps under this name, else a file.
///
/// The file's path is looked up in the current directory. In each of `folders` it is looked up as it is, and then with its
/// first parts taken off one by one. A trace may come from anybody, so only files inside of these folders are read,
/// whatever `..`, links and absolute paths say. Answers `None` if there is none, it has more than 4 MiB, or the kept
/// text is damaged and no file is found.
pub fn source_code(trace: &TraceFile, file: &str, folders: &[PathBuf]) -> Option<SourceCode> {
    if let Ok(Some(kept)) = trace.text(file)
        && kept.text.len() as u64 <= MAX_FILE_BYTES
    {
        return Some(SourceCode { lines: lines(&kept.text), has_changed: false });
    }
    let text = read_source(file, folders)?;
    let properties = &trace.metadata().properties;
    let recorded = properties.iter().find(|(name, _)| name.strip_prefix(SOURCE_HASH_PREFIX) == Some(file));
    let has_changed = recorded.is_some_and(|(_, hash)| *hash != format!("{:016x}", source_hash(&text)));
    Some(SourceCode { lines: lines(&text), has_changed })
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.replace('\t', "    ")).collect()
}

/// Reads the text of a file as [`source_code`] looks for it.
fn read_source(file: &str, folders: &[PathBuf]) -> Option<String> {
    let path = Path::new(file);
    let folders = folders.iter().filter_map(|folder| folder.canonicalize().ok());
    let here = Path::new(".").canonicalize().ok();
    if path.is_absolute() {
        let inside: Vec<PathBuf> = here.iter().cloned().chain(folders.clone()).collect();
        if let Some(lines) = inside.iter().find_map(|folder| read_inside(folder, path)) {
            return Some(lines);
        }
    }
    let normal = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let parts: Vec<Component<'_>> = path.components().filter(normal).collect();
    if parts.len() > MAX_PARTS {
        return None;
    }
    let from = |folder: &Path, skip: usize| {
        read_inside(folder, &folder.join(parts[skip..].iter().collect::<PathBuf>()))
    };
    for folder in folders {
        if let Some(lines) = (0..parts.len()).find_map(|skip| from(&folder, skip)) {
            return Some(lines);
        }
    }
    let here = here.filter(|_| path.is_relative() && !parts.is_empty())?;
    read_inside(&here, &here.join(path))
}

/// Reads a file if it lies in `folder`, which is canonical.
fn read_inside(folder: &Path, path: &Path) -> Option<String> {
    let path = path.canonicalize().ok().filter(|path| path.starts_with(folder))?;
    // Opening a pipe could wait for ever.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&path).ok()?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return None;
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_below_the_folders_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let below = folder.path().join("kernels/src");
        std::fs::create_dir_all(&below).expect("a folder below");
        std::fs::write(below.join("k.rs"), "one\n\ttwo\n").expect("a file");
        std::fs::write(folder.path().join("secret"), "key\n").expect("a file");
        let found = |file: &str, from: &Path| read_source(file, &[from.to_owned()]);
        let lines = Some("one\n\ttwo\n".to_owned());
        assert_eq!(found("kernels/src/k.rs", folder.path()), lines);
        assert_eq!(found("workspace/kernels/src/k.rs", folder.path()), lines);
        assert_eq!(found("k.rs", &below), lines);
        assert_eq!(found(&below.join("k.rs").display().to_string(), folder.path()), lines);
        // Not outside: by parents, by absolute paths, by links.
        assert_eq!(found("../../secret", &below), None);
        assert_eq!(found(&folder.path().join("secret").display().to_string(), &below), None);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(folder.path().join("secret"), below.join("link")).expect("a link");
            assert_eq!(found("link", &below), None);
        }
        let deep = "a/".repeat(30_000) + "k.rs";
        for odd in ["", "/", ".", "..", "kernels", "kernels/src/k.rs/x", "k\0.rs", &deep] {
            assert_eq!(found(odd, folder.path()), None, "{odd}");
        }
    }

    #[test]
    fn the_current_directory_is_looked_in() {
        // Tests run in the package's folder.
        assert!(read_source("src/source.rs", &[]).is_some());
        assert_eq!(read_source("elsewhere/src/source.rs", &[]), None);
    }
}
