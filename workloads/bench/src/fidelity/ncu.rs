//! Runs a program under Nsight Compute and reads the counts of its marks.
//!
//! Requests three metrics by name instead of the section `SourceCounters`, so that ncu runs each kernel twice
//! and not five times. It restores device memory (and pinned host memory) before the second run, so a traced
//! kernel leaves the logs of the run that the metrics belong to. They equal the counts that the kernel keeps
//! in memory, even if each run differs (checked with ncu 2025.3.1 on an H200).

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use wait_timeout::ChildExt;
use warptrace_host::MARKS_VARIABLE;
use warptrace_ptx::splice::TRACED_SUFFIX;

use super::source_page::{self, ProfiledLaunch};
use crate::files;

/// Install locations of ncu from the toolkit and from the profiler's own package: folders, and names in them.
const FOLDERS: [(&str, &str); 3] = [
    ("/usr/local/cuda/bin", "ncu"),
    ("/opt/nvidia/nsight-compute", "*/ncu"),
    ("/usr/local", "cuda-*/bin/ncu"),
];
const NO_PERMISSION: &str = "ERR_NVGPUCTRPERM";
/// The metrics: warp executions, lanes, and lanes whose predicate is true.
const METRICS: &str = "inst_executed,thread_inst_executed,thread_inst_executed_true";
const MAX_MESSAGE: usize = 2_000;

/// Error: only administrators may read the counters.
#[derive(Debug, thiserror::Error)]
#[error(
    "the driver does not let this user read the hardware counters (ERR_NVGPUCTRPERM): run as root, or load the driver's module with NVreg_RestrictProfilingToAdminUsers=0; in a container, give it the capability SYS_ADMIN"
)]
pub(crate) struct NoPermission;

#[derive(Clone, Debug)]
pub(crate) struct Ncu {
    path: PathBuf,
}

impl Ncu {
    /// Finds ncu: the given file, the first one on the PATH, or the highest version in the usual folders.
    pub(crate) fn find(named: Option<&Path>) -> anyhow::Result<Self> {
        match named {
            Some(path) if path.is_file() => Ok(Self { path: path.to_owned() }),
            Some(path) => bail!("{} is not there: name Nsight Compute's program `ncu`", path.display()),
            None => Self::find_in(std::env::var_os("PATH").as_deref(), Path::new("/")),
        }
    }

    fn find_in(path: Option<&OsStr>, root: &Path) -> anyhow::Result<Self> {
        let on_path = path.into_iter().flat_map(std::env::split_paths).map(|folder| folder.join("ncu"));
        let usual = FOLDERS.iter().flat_map(|(folder, name)| {
            let folder = root.join(folder.trim_start_matches('/'));
            match name.split_once('*') {
                None => vec![folder.join(name)],
                Some((prefix, suffix)) => versions(&folder, prefix, suffix.trim_start_matches('/')),
            }
        });
        let found = on_path.chain(usual).find(|path| path.is_file());
        found.map(|path| Self { path }).with_context(|| {
            format!(
                "Nsight Compute is not here: `ncu` is neither on the PATH nor in {}; install it (it comes with the CUDA toolkit), or name it with --ncu",
                FOLDERS.map(|(folder, name)| format!("{folder}/{name}")).join(", ")
            )
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `program` with its arguments and with `marks` as `WARPTRACE_MARKS`. Profiles its first `launches`
    /// launches of `kernels`, or of their traced copies. Writes messages to files in `folder`. Fails if ncu
    /// or the program fails or takes longer than `limit`, or if ncu's output cannot be parsed.
    pub(crate) fn profile(
        &self,
        (kernels, traced, launches): (&[&str], bool, usize),
        program: (&Path, &[OsString]),
        marks: &str,
        folder: &Path,
        limit: Duration,
    ) -> anyhow::Result<Vec<ProfiledLaunch>> {
        let (log, said) = (folder.join("ncu.log"), folder.join("said.log"));
        let messages = files::create(&said)?;
        let errors = messages.try_clone().context("cannot create a file for messages")?;
        let mut command = Command::new(&self.path);
        command.args(arguments(kernels, traced, launches, &log)).arg(program.0).args(program.1);
        command.env(MARKS_VARIABLE, marks).stdin(Stdio::null()).stdout(messages).stderr(errors);
        own_group(&mut command);
        let mut child = command.spawn().with_context(|| format!("cannot start {}", self.path.display()))?;
        let ended = wait(&mut child, limit).context("cannot wait for ncu")?;
        let text = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
        let said = String::from_utf8_lossy(&fs::read(&said).unwrap_or_default()).into_owned();
        if text.contains(NO_PERMISSION) || said.contains(NO_PERMISSION) {
            return Err(NoPermission.into());
        }
        let ncu = self.path.display();
        match ended {
            None => {
                let (program, seconds) = (program.0.display(), limit.as_secs());
                bail!("{program} under {ncu} took more than {seconds} s, and was ended")
            }
            Some(status) if !status.success() => {
                bail!("{ncu} failed ({status}): {}", messages_of(&text, &said))
            }
            Some(_) => source_page::read(&text),
        }
    }
}

/// Returns the files `folder/PREFIX.../suffix`, highest version first. Compares numbers by value.
fn versions(folder: &Path, prefix: &str, suffix: &str) -> Vec<PathBuf> {
    let numbers = |name: &str| -> Vec<u64> {
        name.split(|character: char| !character.is_ascii_digit())
            .filter_map(|word| word.parse().ok())
            .collect()
    };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort_by_key(|name| std::cmp::Reverse(numbers(name)));
    names.into_iter().map(|name| folder.join(name).join(suffix)).collect()
}

fn arguments(kernels: &[&str], traced: bool, launches: usize, log: &Path) -> Vec<OsString> {
    let suffix = if traced { TRACED_SUFFIX.replace('$', "\\$") } else { String::new() };
    let names = format!("regex:^({}){suffix}$", kernels.join("|"));
    let mut arguments: Vec<OsString> = [
        "--clock-control",
        "none",
        "--metrics",
        METRICS,
        "--page",
        "source",
        "--csv",
        "--print-source",
        "sass",
    ]
    .map(OsString::from)
    .into();
    arguments.extend(["--launch-count".into(), launches.to_string().into()]);
    arguments.extend(["--kernel-name".into(), names.into(), "--log-file".into(), log.into()]);
    arguments
}

fn messages_of(log: &str, said: &str) -> String {
    let errors = log.lines().filter(|line| line.starts_with("==ERROR==")).chain(said.lines());
    let text = errors.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    if text.is_empty() {
        return "it said nothing".to_owned();
    }
    // Keeps the end: the program's error comes last.
    let start = (text.len().saturating_sub(MAX_MESSAGE)..).find(|&start| text.is_char_boundary(start));
    text[start.unwrap_or(0)..].to_owned()
}

/// Makes the child the leader of a process group, so that the program can be killed together with ncu.
fn own_group(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// Waits for a child. If it exceeds the limit, kills it and its group, and returns `None`.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let status = child.wait_timeout(limit)?;
    if status.is_none() {
        #[cfg(unix)]
        if let Ok(group) = i32::try_from(child.id()) {
            // SAFETY: `kill` accesses no memory. The child is not reaped, so its group's id is not reused.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        // Kills the child on systems without groups.
        let _ = child.kill();
        child.wait()?;
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_kernels_and_metrics() {
        let text = |traced| -> Vec<String> {
            let arguments = arguments(&["nbody_force", "nbody_move"], traced, 50, Path::new("/tmp/log"));
            arguments.into_iter().map(|argument| argument.into_string().unwrap()).collect()
        };
        let traced = text(true);
        assert!(traced.windows(2).any(|pair| pair == ["--clock-control", "none"]), "{traced:?}");
        assert!(
            traced
                .windows(2)
                .any(|pair| pair == ["--kernel-name", "regex:^(nbody_force|nbody_move)\\$traced$"]),
            "{traced:?}"
        );
        assert!(text(false).contains(&"regex:^(nbody_force|nbody_move)$".to_owned()));
        for pair in [["--log-file", "/tmp/log"], ["--launch-count", "50"]] {
            assert!(traced.windows(2).any(|found| found == pair), "{traced:?}");
        }
    }

    #[test]
    fn the_newest_of_the_usual_places_is_found_after_the_path() {
        let root = tempfile::tempdir().unwrap();
        let missing = Ncu::find_in(None, root.path()).unwrap_err();
        assert!(missing.to_string().contains("/opt/nvidia/nsight-compute/*/ncu"), "{missing}");
        let put = |folder: &str| {
            let folder = root.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("ncu"), "").unwrap();
            folder.join("ncu")
        };
        let find = |path: Option<&OsStr>| Ncu::find_in(path, root.path()).unwrap().path;
        put("opt/nvidia/nsight-compute/2024.10.0");
        let newest = put("opt/nvidia/nsight-compute/2025.3.1");
        put("opt/nvidia/nsight-compute/2025.2.9");
        assert_eq!(find(None), newest);
        let toolkit = put("usr/local/cuda/bin");
        assert_eq!(find(None), toolkit);
        let bin = put("bin");
        assert_eq!(find(Some(bin.parent().unwrap().as_os_str())), bin);
        let error = Ncu::find(Some(Path::new("no-such-ncu"))).unwrap_err();
        assert!(error.to_string().starts_with("no-such-ncu is not there"), "{error}");
    }

    /// Runs a shell script instead of ncu, with ncu's arguments.
    #[cfg(unix)]
    fn run(script: &str, limit: Duration) -> anyhow::Result<Vec<ProfiledLaunch>> {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ncu");
        fs::write(&path, format!("#!/bin/sh\nlog={}/ncu.log\n{script}\n", folder.path().display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let program = Path::new("/bin/true");
        Ncu { path }.profile((&["walk"], true, 50), (program, &["--now".into()]), "3", folder.path(), limit)
    }

    #[cfg(unix)]
    #[test]
    fn what_ncu_says_becomes_counts_or_an_error() {
        let minute = Duration::from_secs(60);
        let table = "printf '\"Kernel Name\",\"walk$traced\",\\n\"Address\",\"Source\",\"inst_executed\",\"thread_inst_executed\"\\n\"0x0\",\"PMTRIG 0x1\",\"2\",\"64\"\\n' > $log";
        let launches =
            run(&format!("{table}; for last; do :; done; test $last$WARPTRACE_MARKS = --now3"), minute)
                .unwrap();
        assert_eq!((launches[0].kernel.as_str(), launches[0].counts.total().lanes), ("walk", 64));

        let denied = "echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission' > $log; exit 1";
        assert!(run(denied, minute).unwrap_err().is::<NoPermission>());

        let error =
            run("echo '==ERROR== no metric' > $log; echo 'error: no GPU' >&2; exit 9", minute).unwrap_err();
        assert!(error.to_string().contains("9): ==ERROR== no metric; error: no GPU"), "{error}");
        let error = run("exit 4", minute).unwrap_err();
        assert!(error.to_string().ends_with("it said nothing"), "{error}");
        let error = run("echo '\"0x0\",\"PMTRIG 0x1\",\"2\",\"64\"' > $log", minute).unwrap_err();
        assert!(error.to_string().starts_with("line 1 of what ncu printed has a mark"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn what_takes_too_long_is_ended_with_what_it_started() {
        let error = run("sleep 100 & wait", Duration::from_millis(100)).unwrap_err();
        assert!(error.to_string().contains("took more than 0 s"), "{error}");
    }

    #[test]
    fn long_messages_keep_their_end() {
        let said = format!("{}\nerror: the end", "ä".repeat(MAX_MESSAGE));
        let message = messages_of("", &said);
        assert!(message.len() <= MAX_MESSAGE && message.ends_with("error: the end"), "{message}");
    }
}
