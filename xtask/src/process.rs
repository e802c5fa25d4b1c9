//! Execution of other programs.

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use wait_timeout::ChildExt;

const PIP_LIMIT: Duration = Duration::from_secs(600);

pub(crate) struct Quiet {
    pub(crate) success: bool,
    /// Standard output, then standard error.
    pub(crate) said: String,
}

impl Quiet {
    /// Returns the last line that is not blank.
    pub(crate) fn last_line(&self) -> &str {
        self.said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it said nothing")
    }
}

/// Runs `command` without a terminal, collects its output, and ends it after `limit`. The limit is necessary
/// because package managers wait for a long time if a network drops packets.
pub(crate) fn quietly(command: &mut Command, limit: Duration) -> std::io::Result<Quiet> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let outputs = [
        child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
    ];
    let readers: Vec<_> = outputs
        .into_iter()
        .flatten()
        .map(|mut stream| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                // Output before an error is still useful.
                let _ = stream.read_to_end(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            })
        })
        .collect();
    let status = child.wait_timeout(limit)?;
    if status.is_none() {
        child.kill()?;
        child.wait()?;
    }
    let Some(status) = status else {
        // Child processes of the program may hold the pipes open, so the readers are not joined.
        return Ok(Quiet { success: false, said: format!("no end after {} s", limit.as_secs()) });
    };
    let said: String = readers.into_iter().map(|reader| reader.join().unwrap_or_default()).collect();
    Ok(Quiet { success: status.success(), said })
}

/// Runs `command` on this terminal and returns its status.
pub(crate) fn status(command: &mut Command) -> anyhow::Result<ExitStatus> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.status().with_context(|| format!("cannot run {program}"))
}

/// Like [`status`], but returns an error if the program fails.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!("`{}` failed ({status})", line(command));
    }
    Ok(())
}

/// Installs PyPI packages outside every Python environment. `what` may contain options of `pip install`.
pub(crate) fn pip_install(folder: &std::path::Path, what: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "install", "--upgrade", "--target"]).arg(folder).args(what);
    pip(&mut command)
}

pub(crate) fn pip(command: &mut Command) -> anyhow::Result<()> {
    command.args(["--quiet", "--disable-pip-version-check"]).env("PIP_ROOT_USER_ACTION", "ignore");
    let ended = quietly(command, PIP_LIMIT).context("cannot run Python with pip")?;
    ensure!(ended.success, "`{}` failed: {}", line(command), ended.last_line());
    Ok(())
}

pub(crate) fn line(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut line = program.to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let ended = quietly(Command::new("sleep").arg("30"), Duration::from_millis(100)).expect("sleep runs");
        assert!(!ended.success);
        assert_eq!(ended.said, "no end after 0 s");
    }

    #[test]
    fn both_outputs_are_collected() {
        let ended = quietly(
            Command::new("sh").args(["-c", "echo one; echo two >&2; exit 3"]),
            Duration::from_secs(60),
        )
        .expect("sh runs");
        assert!(!ended.success);
        assert_eq!(ended.said, "one\ntwo\n");
        assert_eq!(ended.last_line(), "two");
    }
}
