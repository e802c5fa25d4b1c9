//! Trace file names with placeholders for the process, its rank and its device.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Values of the placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameParts {
    /// `%p`: the process ID.
    pub process: u32,
    /// `%r`: the rank; `None` if no launcher set it.
    pub rank: Option<u32>,
    /// `%d`: the number of the device within the process.
    pub device: u32,
}

/// A file name could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileNameError {
    /// An unknown placeholder.
    #[error(
        "`%{found}` in the name of the trace stands for nothing: %p is the number of the process, %r its rank, %d the number of the device, %% a percent sign"
    )]
    Unknown {
        /// The character after the percent sign, escaped; empty at the end of the name.
        found: String,
    },
    /// The name has `%r`, but the process has no rank.
    #[error(
        "the name of the trace has %r, but no launcher told this process its rank: start it with torchrun, mpirun or srun, or use %p, the number of the process"
    )]
    NoRank,
}

/// Returns true if the name contains `%p` or `%r`, so that each process or rank of a job has its own file.
pub fn is_name_of_one(name: &Path) -> bool {
    let mut letters = name.as_os_str().as_encoded_bytes().iter();
    let mut is_of_one = false;
    while let Some(byte) = letters.next() {
        is_of_one |= *byte == b'%' && matches!(letters.next(), Some(b'p' | b'r'));
    }
    is_of_one
}

/// Replaces the placeholders of a name. Fails if a percent sign does not begin `%p`, `%r`, `%d` or `%%`, or
/// `%r` is used without a rank.
pub fn file_name(name: &Path, parts: NameParts) -> Result<PathBuf, FileNameError> {
    let text = name.as_os_str();
    let Some(first) = text.as_encoded_bytes().iter().position(|byte| *byte == b'%') else {
        return Ok(name.to_owned());
    };
    let mut made = OsString::with_capacity(text.len());
    let (mut rest, mut at) = (text.as_encoded_bytes(), first);
    loop {
        // SAFETY: bytes from `as_encoded_bytes`, cut only immediately before or after ASCII characters.
        made.push(unsafe { std::ffi::OsStr::from_encoded_bytes_unchecked(&rest[..at]) });
        let Some(behind) = rest.get(at + 1..) else { break };
        match behind.first() {
            Some(b'p') => made.push(parts.process.to_string()),
            Some(b'r') => made.push(parts.rank.ok_or(FileNameError::NoRank)?.to_string()),
            Some(b'd') => made.push(parts.device.to_string()),
            Some(b'%') => made.push("%"),
            _ => {
                let found = String::from_utf8_lossy(behind).chars().next();
                let found = found.map_or_else(String::new, |letter| {
                    warptrace_format::shown(&letter.to_string()).into_owned()
                });
                return Err(FileNameError::Unknown { found });
            }
        }
        rest = &behind[1..];
        at = rest.iter().position(|byte| *byte == b'%').unwrap_or(rest.len());
    }
    Ok(made.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: NameParts = NameParts { process: 7, rank: Some(3), device: 1 };

    #[test]
    fn letters_are_replaced() {
        for (name, made) in [
            ("t.wtrc", "t.wtrc"),
            ("", ""),
            ("/tmp/%p/t.%r-%d.wtrc", "/tmp/7/t.3-1.wtrc"),
            ("%r%r%%p%%", "33%p%"),
            ("é%pé", "é7é"),
        ] {
            assert_eq!(file_name(Path::new(name), PARTS), Ok(PathBuf::from(made)), "{name}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            let odd = std::ffi::OsStr::from_bytes(b"\xff%p\xff");
            let made = file_name(Path::new(odd), PARTS).unwrap();
            assert_eq!(made.as_os_str().as_bytes(), b"\xff7\xff");
        }
    }

    #[test]
    fn what_stands_for_nothing_is_named_with_what_is_known() {
        for (name, found) in
            [("a%x", "`%x`"), ("100%", "`%`"), ("%é", "`%é`"), ("%\u{1b}", "`%\\u{1b}`"), ("%p%", "`%`")]
        {
            let error = file_name(Path::new(name), PARTS).unwrap_err().to_string();
            assert!(error.starts_with(found) && error.contains("%p") && error.contains("%%"), "{error}");
        }
        let no_rank = NameParts { rank: None, ..PARTS };
        let error = file_name(Path::new("t.%r"), no_rank).unwrap_err().to_string();
        assert!(error.contains("torchrun") && error.contains("%p"), "{error}");
        assert!(file_name(Path::new("t.%p"), no_rank).is_ok());
    }

    #[test]
    fn names_of_one_process_are_told() {
        let found = ["t", "t%d", "t%%p", "t%%%r", "%p", "t%"].map(|name| is_name_of_one(Path::new(name)));
        assert_eq!(found, [false, false, false, true, true, false]);
    }
}
