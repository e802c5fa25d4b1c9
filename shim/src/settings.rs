//! What `warptrace run` asks for, in environment variables.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use warptrace_format::codec::{CodecSpec, EclParams, PredictParams};
use warptrace_host::{MemorySize, Policy};
use warptrace_ptx::points::Points;

/// How long a launch waits for room if nobody says it.
const WAIT: Duration = Duration::from_secs(10);

/// What to record, how, and where to.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The trace; `%p` stands for the process's number.
    file: PathBuf,
    /// A folder in which processes say what they did, and which of them writes a file.
    pub(crate) report: Option<PathBuf>,
    pub(crate) points: Points,
    pub(crate) codec: CodecSpec,
    pub(crate) policy: Policy,
    /// Bytes of device memory; `None`: what the shim finds right.
    pub(crate) memory: Option<MemorySize>,
    /// How many launches of each kernel are recorded, from its first one on; `None`: all.
    pub(crate) launches: Option<u64>,
    /// How long a launch waits for room that those before it take.
    pub(crate) wait: Duration,
    /// Each launch is waited for, and what it recorded is written before the next one.
    pub(crate) sync: bool,
    /// Nothing is recorded before the program says so.
    pub(crate) manual: bool,
    /// Kernels to trace, with `*` for any characters; all, if there is none.
    pub(crate) kernels: Vec<String>,
    /// Record nothing, and let hardware counters count at each point instead.
    pub(crate) marks: bool,
}

impl Settings {
    /// Reads the environment; `None` if nothing is to be traced.
    pub(crate) fn read() -> Option<Self> {
        let variable = |name: &str| std::env::var_os(format!("WARPTRACE_RUN_{name}"));
        Self::of(variable)
    }

    fn of(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok()).unwrap_or_default();
        Some(Self {
            file: PathBuf::from(variable("FILE").filter(|file| !file.is_empty())?),
            report: variable("REPORT").filter(|folder| !folder.is_empty()).map(PathBuf::from),
            points: text("POINTS").parse().unwrap_or_default(),
            codec: match text("CODEC").as_str() {
                "raw" => CodecSpec::Raw,
                "ecl" => CodecSpec::Ecl(EclParams::DEFAULT),
                _ => CodecSpec::Predict(PredictParams::DEFAULT),
            },
            policy: if text("POLICY") == "ring" { Policy::Ring } else { Policy::Stop },
            memory: text("MEMORY").parse().ok(),
            launches: text("LAUNCHES").parse().ok(),
            wait: text("WAIT").parse().map_or(WAIT, Duration::from_secs),
            sync: text("SYNC") == "1",
            manual: text("MANUAL") == "1",
            kernels: text("KERNEL").lines().map(str::to_owned).collect(),
            marks: text("MARKS") == "1",
        })
    }

    /// Names the trace of this process, the first or a later one: `trace.wtrc`, `trace-2.wtrc`. `asked` is
    /// what the program says itself.
    pub(crate) fn file(&self, asked: Option<&Path>, process: u32, number: usize) -> PathBuf {
        let bytes = asked.unwrap_or(&self.file).as_os_str().as_bytes();
        let mut name = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some(at) = rest.windows(2).position(|pair| pair == b"%p") {
            name.extend_from_slice(&rest[..at]);
            name.extend_from_slice(process.to_string().as_bytes());
            rest = &rest[at + 2..];
        }
        name.extend_from_slice(rest);
        let path = PathBuf::from(OsString::from_vec(name));
        if number <= 1 { path } else { numbered(&path, number) }
    }

    /// Tells whether a kernel is to be traced, by its name in the PTX or as people write it.
    pub(crate) fn wants(&self, mangled: &str, readable: &str) -> bool {
        self.kernels.is_empty()
            || self.kernels.iter().any(|pattern| matches(pattern, mangled) || matches(pattern, readable))
    }
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Tells whether a name fits a pattern, in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Option<Settings> {
        Settings::of(|name| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn without_a_file_nothing_is_traced() {
        assert!(settings(&[("POINTS", "loops")]).is_none());
        assert!(settings(&[("FILE", "")]).is_none());
    }

    #[test]
    fn variables_are_read_and_files_named() {
        let found = settings(&[
            ("FILE", "/tmp/%p/t.%p.wtrc"),
            ("POINTS", "loops"),
            ("MEMORY", "64MiB"),
            ("POLICY", "ring"),
            ("CODEC", "raw"),
            ("KERNEL", "a*c\nsaxpy"),
        ]);
        let found = found.expect("it names a file");
        assert_eq!(found.file(None, 7, 1), Path::new("/tmp/7/t.7.wtrc"));
        assert_eq!(found.file(None, 7, 2), Path::new("/tmp/7/t.7-2.wtrc"));
        assert_eq!(found.file(Some(Path::new("own.%p")), 7, 1), Path::new("own.7"));
        assert_eq!(
            (found.points, found.memory, found.codec),
            (Points::Loops, Some(MemorySize(64 << 20)), CodecSpec::Raw)
        );
        assert_eq!(found.policy, Policy::Ring);
        assert!(found.wants("abc", "") && found.wants("_Z5saxpyv", "saxpy") && !found.wants("ab", "ab"));
        assert!(settings(&[("FILE", "t")]).expect("it names a file").wants("any", "any"));
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "acb", false),
            ("ab*b", "ab", false),
            ("ab", "abc", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
