//! Finds the source files that a location table names.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use warptrace_decoder::{DecodeError, KeptText, TraceFile};
use warptrace_format::location::{SOURCE_HASH_PREFIX, source_hash};
use warptrace_format::shown;

const MAX_FILE_BYTES: u64 = 4 << 20;
/// Limit of the lines of a source. Each line takes memory, even if it is empty.
const MAX_LINES: usize = 1 << 18;
/// File name extensions of languages that GPU kernels are written in.
const SOURCES: [&str; 36] = [
    "c", "cc", "cl", "cpp", "cu", "cuf", "cuh", "cxx", "f", "f03", "f08", "f90", "f95", "for", "h", "hh",
    "hip", "hpp", "hxx", "inc", "inl", "ipp", "jl", "ll", "mlir", "mojo", "nv", "ptx", "py", "pyi", "pyx",
    "rs", "slang", "tcc", "ttir", "ttgir",
];
const MAX_PARTS: usize = 64;

/// Reason why a source is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSource {
    /// No folder has the file.
    NotFound,
    /// No folder has the file, which is a header of CUDA.
    OfCuda,
    /// The source is not read. The text has the reason, which can apply whether or not the file exists.
    Refused(&'static str),
}

impl fmt::Display for NoSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => out.write_str("not found"),
            Self::OfCuda => out.write_str("not found: a header of CUDA"),
            Self::Refused(why) => write!(out, "not read: {why}"),
        }
    }
}

/// Current text of a source that a trace names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceCode {
    /// Lines, escaped for display. Tabs are four spaces.
    pub lines: Vec<String>,
    /// True if this text was compiled; `None` if the trace does not have its hash.
    pub is_compiled: Option<bool>,
    /// File that was read; `None` if the text is from the trace.
    pub path: Option<PathBuf>,
}

impl SourceCode {
    /// Returns the memory that its lines take, in bytes.
    pub fn bytes(&self) -> usize {
        self.lines.iter().map(|line| size_of::<String>() + line.len()).sum()
    }
}

/// Reads a source that a trace names, from the trace if it keeps the text, otherwise from a file. Looks up
/// the path in the current directory. In each of `folders`, looks up the path as it is, and then without its
/// first components, removed one at a time. A trace is untrusted: for any `..`, link or absolute path, only
/// files inside these folders are read, and only if they are not hidden, not in a hidden folder, and sources
/// by their name and text. Fails if no source was found, or one is refused, for example above 4 MiB or
/// 262,144 lines.
pub fn source_code(trace: &TraceFile, file: &str, folders: &[PathBuf]) -> Result<SourceCode, NoSource> {
    let kept = match trace.text(file, MAX_FILE_BYTES as usize) {
        Ok(KeptText::Whole(kept)) => match lines(&kept.text) {
            Ok(lines) => return Ok(SourceCode { lines, is_compiled: Some(true), path: None }),
            Err(_) => Some("its text in the trace has more than 262,144 lines"),
        },
        Ok(KeptText::TooLong) => Some("its text in the trace has more than 4 MiB"),
        Ok(KeptText::None) => None,
        Err(DecodeError::TooMuchWork { .. }) => {
            Some("the texts in the trace take more work than its size lets expect; --unlimited reads them")
        }
        Err(_) => Some("a text in the trace is damaged, perhaps that of this file"),
    };
    let (path, text) = read_source(file, folders).map_err(|error| kept.map_or(error, NoSource::Refused))?;
    let properties = &trace.metadata().properties;
    let recorded = properties.iter().find(|(name, _)| name.strip_prefix(SOURCE_HASH_PREFIX) == Some(file));
    let is_compiled = recorded.map(|(_, hash)| *hash == format!("{:016x}", source_hash(&text)));
    Ok(SourceCode { lines: lines(&text)?, is_compiled, path: Some(path) })
}

fn lines(text: &str) -> Result<Vec<String>, NoSource> {
    let shown = |line: &str| shown(&line.replace('\t', "    ")).into_owned();
    let lines: Vec<String> = text.lines().take(MAX_LINES + 1).map(shown).collect();
    if lines.len() > MAX_LINES {
        return Err(NoSource::Refused("it has more than 262,144 lines"));
    }
    Ok(lines)
}

fn read_source(file: &str, folders: &[PathBuf]) -> Result<(PathBuf, String), NoSource> {
    let path = Path::new(file);
    if !is_source(path) {
        return Err(NoSource::Refused("its name has no ending of a source language"));
    }
    let mut refused = None;
    let found = find_source(path, folders, &mut |error| _ = refused.get_or_insert(error));
    let hidden = || is_hidden(path).then_some(NoSource::Refused("it is hidden, or in a hidden folder"));
    let missing = if is_of_cuda(file) { NoSource::OfCuda } else { NoSource::NotFound };
    found.ok_or_else(|| refused.or_else(hidden).unwrap_or(missing))
}

fn is_of_cuda(file: &str) -> bool {
    // The toolkit's headers are in `targets/x86_64-linux`, `targets/sbsa-linux` or `targets/aarch64-linux`.
    let is_toolkits = file.contains("/targets/") && file.contains("-linux/include/");
    is_toolkits || file.starts_with("/usr/local/cuda") || file.contains("/site-packages/nvidia/")
}

fn find_source(
    path: &Path,
    folders: &[PathBuf],
    refused: &mut dyn FnMut(NoSource),
) -> Option<(PathBuf, String)> {
    let mut read_inside = |folder: &Path, path: &Path| match read_inside(folder, path) {
        Err(error @ NoSource::Refused(_)) => {
            refused(error);
            None
        }
        found => found.ok(),
    };
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
    for folder in folders {
        let mut from =
            |skip: usize| read_inside(&folder, &folder.join(parts[skip..].iter().collect::<PathBuf>()));
        if let Some(lines) = (0..parts.len()).find_map(&mut from) {
            return Some(lines);
        }
    }
    let here = here.filter(|_| path.is_relative() && !parts.is_empty())?;
    read_inside(&here, &here.join(path))
}

/// Reads a file if it is inside `folder`, which must be canonical.
fn read_inside(folder: &Path, path: &Path) -> Result<(PathBuf, String), NoSource> {
    let there = || {
        let path = path.canonicalize().ok()?;
        let inside = path.strip_prefix(folder).ok()?;
        // Opening a pipe could block. The target of a link is not disclosed.
        let is_read = is_source(inside) && !is_hidden(inside) && path.metadata().ok()?.is_file();
        is_read.then_some(path)
    };
    let path = there().ok_or(NoSource::NotFound)?;
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|_| NoSource::Refused("it cannot be opened"))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(NoSource::Refused("it has more than 4 MiB"));
    }
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    Ok((path, text.ok_or(NoSource::Refused("it is no UTF-8 text"))?))
}

fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    SOURCES.contains(&extension.to_ascii_lowercase().as_str())
}

fn is_hidden(path: &Path) -> bool {
    path.components()
        .any(|part| matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b".")))
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
        let found =
            |file: &str, from: &Path| read_source(file, &[from.to_owned()]).ok().map(|(_, text)| text);
        let lines = Some("one\n\ttwo\n".to_owned());
        assert_eq!(found("kernels/src/k.rs", folder.path()), lines);
        assert_eq!(found("workspace/kernels/src/k.rs", folder.path()), lines);
        assert_eq!(found("k.rs", &below), lines);
        assert_eq!(found(&below.join("k.rs").display().to_string(), folder.path()), lines);
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
    fn what_is_hidden_or_no_source_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, bytes).expect("a file");
        };
        let large = vec![b' '; MAX_FILE_BYTES as usize + 1];
        for (name, bytes, why) in [
            ("k.cu", &b"x"[..], ""),
            (".ssh/id_rsa", b"key", "not read: its name has no ending of a source language"),
            (".ssh/id.rs", b"key", "not read: it is hidden, or in a hidden folder"),
            ("src/.secret.py", b"key", "not read: it is hidden, or in a hidden folder"),
            ("passwords.txt", b"key", "not read: its name has no ending of a source language"),
            ("binary.c", b"a\0b", "not read: it is no UTF-8 text"),
            ("latin.c", b"a\xe4b", "not read: it is no UTF-8 text"),
            ("large.c", &large, "not read: it has more than 4 MiB"),
        ] {
            let look = || read_source(name, &[folder.path().to_owned()]);
            let before = look().expect_err("it is not there").to_string();
            write(name, bytes);
            assert_eq!(look().map_or_else(|error| error.to_string(), |_| String::new()), why, "{name}");
            assert!(before == why || before == "not found", "{name}: {before}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(folder.path().join(".ssh/id_rsa"), folder.path().join("l.rs"))
                .expect("a link");
            assert_eq!(read_source("l.rs", &[folder.path().to_owned()]), Err(NoSource::NotFound));
        }
    }

    #[test]
    fn the_current_directory_is_looked_in() {
        assert!(read_source("src/source.rs", &[]).is_ok());
        assert_eq!(read_source("elsewhere/src/source.rs", &[]), Err(NoSource::NotFound));
    }
}
