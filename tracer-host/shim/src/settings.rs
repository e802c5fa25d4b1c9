//! Settings that `warptrace run` passes in environment variables.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use warptrace_abi::run::{RUN_FILE, RUN_REPORT, RUN_SPEC};
use warptrace_host::{FileNameError, NameParts, file_name};
use warptrace_spec::RunSpec;

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Path of the trace, with placeholders for the process, its rank and the device.
    file: PathBuf,
    pub(crate) spec: RunSpec,
}

/// Returns the folder for reports and for reservations of files; `None` if no report is requested.
pub(crate) fn report_folder() -> Option<PathBuf> {
    std::env::var_os(RUN_REPORT).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

impl Settings {
    /// Reads the environment; `None` if nothing is to be traced. Errors name variable, value, allowed values.
    pub(crate) fn read() -> Result<Option<Self>, String> {
        Self::new(|name| std::env::var_os(name))
    }

    fn new(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, String> {
        let Some(file) = variable(RUN_FILE) else { return Ok(None) };
        if file.is_empty() {
            return Err(format!("{RUN_FILE} is empty: it is the path of the trace"));
        }
        let spec = match variable(RUN_SPEC).map(OsString::into_string) {
            None => RunSpec::default(),
            Some(Ok(text)) => {
                RunSpec::from_text(&text).map_err(|error| format!("{RUN_SPEC} is wrong: {error}"))?
            }
            Some(Err(bytes)) => {
                let held = bytes.to_string_lossy();
                return Err(format!(
                    "{RUN_SPEC} is `{held}`: it is text in UTF-8, as `warptrace run` writes it"
                ));
            }
        };
        Ok(Some(Self { file: PathBuf::from(file), spec }))
    }

    /// Returns the path of the trace of this process and a device. `asked` is the program's own choice.
    /// Fails if the name has an unknown placeholder, or one without a value.
    pub(crate) fn file(&self, asked: Option<&Path>, parts: NameParts) -> Result<PathBuf, FileNameError> {
        file_name(asked.unwrap_or(&self.file), parts)
    }

    /// Returns true if the shim waits for each launch, and drains its records, before the next one.
    pub(crate) fn waits(&self) -> bool {
        self.spec.sync || self.spec.recording.window.max_events.is_some()
    }

    /// Returns true if only named kernels are to be traced, and not all.
    pub(crate) fn names_kernels(&self) -> bool {
        !self.spec.recording.window.kernels.is_empty()
    }

    /// Returns true if a kernel is to be traced, by its name in the PTX or its demangled name.
    pub(crate) fn wants(&self, mangled: &str, readable: &str) -> bool {
        let window = &self.spec.recording.window;
        window.names(mangled) || window.names(readable)
    }
}

/// Returns the path of the trace with a number: `trace.wtrc` for 1, `trace-2.wtrc` for 2.
pub(crate) fn numbered(path: &Path, number: usize) -> PathBuf {
    if number <= 1 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use warptrace_format::codec::CodecSpec;
    use warptrace_spec::{MemorySize, Policy};

    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        Settings::new(|name| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn without_a_file_nothing_is_traced() {
        assert!(settings(&[(RUN_SPEC, "{}")]).expect("nothing is wrong").is_none());
        assert!(settings(&[]).expect("nothing is wrong").is_none());
    }

    #[test]
    fn variables_are_read_and_files_named() {
        let text = r#"{"recording": {"memory": "64MiB", "policy": "ring", "codec": "raw", "window": {"kernels": ["a*c", "saxpy"]}}}"#;
        let found = settings(&[(RUN_FILE, "/tmp/%p/t.%p.wtrc"), (RUN_SPEC, text)]);
        let found = found.expect("nothing is wrong").expect("it names a file");
        let parts = NameParts { process: 7, rank: None, device: 1 };
        let path = found.file(None, parts).expect("all is known");
        assert_eq!(path, Path::new("/tmp/7/t.7.wtrc"));
        assert_eq!(
            [1, 2].map(|number| numbered(&path, number)),
            ["/tmp/7/t.7.wtrc", "/tmp/7/t.7-2.wtrc"].map(PathBuf::from)
        );
        assert_eq!(found.file(Some(Path::new("own.%p-%d")), parts), Ok("own.7-1".into()));
        assert_eq!(found.file(Some(Path::new("own.%r")), parts), Err(FileNameError::NoRank));
        let recording = &found.spec.recording;
        assert_eq!((recording.memory, recording.codec), (Some(MemorySize(64 << 20)), CodecSpec::Raw));
        assert_eq!(recording.policy, Policy::Ring);
        assert!(found.wants("abc", "") && found.wants("_Z5saxpyv", "saxpy") && !found.wants("ab", "ab"));
        let all = settings(&[(RUN_FILE, "t")]).expect("nothing is wrong").expect("it names a file");
        assert!(all.wants("any", "any") && !all.names_kernels());
    }

    #[test]
    fn a_bad_variable_is_named_with_what_it_holds_and_what_is_allowed() {
        assert_eq!(
            settings(&[(RUN_FILE, "")]).expect_err("it is empty"),
            "WARPTRACE_RUN_FILE is empty: it is the path of the trace"
        );
        for (text, parts) in [
            (r#"{"recording": {"memory": "much"}}"#, ["recording.memory: it is `much`", "as in 64MiB"]),
            (r#"{"recording": {"codec": "zip"}}"#, ["recording.codec: it is `zip`", "raw, ecl or predict"]),
            (r#"{"recording": {"policy": "keep"}}"#, ["recording.policy: unknown variant `keep`", "`ring`"]),
            (r#"{"recording": {"window": {"blocks": "x"}}}"#, ["recording.window.blocks: it is `x`", "3..7"]),
            (r#"{"recording": {"window": {"first": -1}}}"#, ["recording.window.first: ", "expected u64"]),
            (r#"{"points": "all"}"#, ["points: it is `all`", "blocks, branches, loops, functions or waits"]),
            (r#"{"wait": -3}"#, ["wait: it is -3", "0 or more"]),
            (r#"{"pints": 1}"#, ["unknown field `pints`", "`points`"]),
            ("64MiB", ["WARPTRACE_RUN_SPEC is wrong", "line 1"]),
            (r#"{"recording": {"policy": "stream"}}"#, ["policy stream: ", "record with `stop`"]),
            (r#"{"recording": {"stall_limit": 3}}"#, ["`stall-limit`", "the policy `stream`"]),
        ] {
            let error = settings(&[(RUN_FILE, "t"), (RUN_SPEC, text)]).expect_err(text);
            assert!(error.starts_with(RUN_SPEC), "{error}");
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
    }
}
