//! Compares lines of Rust, crates, the size of the tool and hard-to-read phrases with `results/budget.json`.

mod lines;
mod prose;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::steps::Outcome;
use crate::{process, workspace};

const FILE: &str = "results/budget.json";
/// Percentage by which a figure may exceed its limit.
const MARGIN: u64 = 2;

/// Limits of the file, by name. The file also records the seconds of each tier, which depend on the machine.
type Budget = BTreeMap<String, Limit>;

#[derive(Debug, PartialEq)]
struct Limit {
    limit: u64,
    /// Reason of the last increase.
    reason: String,
}

/// Compares the figures with the file. With `build`, first builds the tool for its size. Fails if a figure is
/// more than 2% above its limit, a limit was raised without a new reason, or a folder has too many phrases.
pub(crate) fn check(build: bool) -> anyhow::Result<Outcome> {
    let text =
        fs::read_to_string(workspace::root().join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    let budget = parse(&text)?;
    let lines = lines::count_all()?;
    let mut figures = BTreeMap::from([
        ("production lines", lines.production),
        ("test lines", lines.tests),
        ("crates", crates()?),
    ]);
    let size = tool_size(build)?;
    figures.extend(size.map(|size| ("tool bytes", size)));

    let mut faults = exceeded(&budget, &figures)?;
    if let Some(previous) = previous(&text)? {
        faults.extend(raised(&parse(&previous)?, &budget));
    }
    let phrases = prose::find_all()?;
    faults.extend(prose::exceeded(&parse_prose(&text)?, &phrases));
    let said: Vec<String> = figures.iter().map(|(name, value)| format!("{value} {name}")).collect();
    println!("{}, {} comment lines, {} hard-to-read phrases", said.join(", "), lines.comments, phrases.len());
    ensure!(faults.is_empty(), "{}", faults.join("; "));
    Ok(Outcome::Passed(match size {
        Some(_) => String::new(),
        None => "size of the tool not checked: it is not built here".to_owned(),
    }))
}

fn parse(text: &str) -> anyhow::Result<Budget> {
    let file: Value = serde_json::from_str(text).with_context(|| format!("{FILE} is not JSON"))?;
    let limits = file["limits"].as_object().with_context(|| format!("{FILE} has no object `limits`"))?;
    let entry = |(name, value): (&String, &Value)| {
        let limit =
            value["limit"].as_u64().with_context(|| format!("{FILE}: {name} has no whole number `limit`"))?;
        let reason =
            value["reason"].as_str().with_context(|| format!("{FILE}: {name} has no text `reason`"))?;
        Ok((name.clone(), Limit { limit, reason: reason.to_owned() }))
    };
    limits.iter().map(entry).collect()
}

/// Reads the limits of hard-to-read phrases, by folder.
fn parse_prose(text: &str) -> anyhow::Result<BTreeMap<String, u64>> {
    let mut file: Value = serde_json::from_str(text).with_context(|| format!("{FILE} is not JSON"))?;
    serde_json::from_value(file["prose"].take())
        .with_context(|| format!("{FILE}: `prose` is not an object of whole numbers"))
}

/// Lists the figures that exceed their limits.
fn exceeded(budget: &Budget, figures: &BTreeMap<&str, u64>) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    for (name, &value) in figures {
        let limit = budget.get(*name).with_context(|| format!("{FILE} has no limit for {name}"))?.limit;
        if value * 100 > limit * (100 + MARGIN) {
            faults.push(format!(
                "{value} {name} exceed the limit of {limit} by more than {MARGIN}%: remove some, or raise the limit in \
                 {FILE} and give a reason there"
            ));
        }
    }
    Ok(faults)
}

/// Lists the limits that were raised without a new reason.
fn raised(previous: &Budget, now: &Budget) -> Vec<String> {
    let is_unexplained = |(name, limit): &(&String, &Limit)| {
        previous.get(*name).is_some_and(|before| {
            limit.limit > before.limit && (limit.reason.is_empty() || limit.reason == before.reason)
        })
    };
    let said =
        |(name, _): (&String, &Limit)| format!("{FILE} raises the limit of {name} without a new reason");
    now.iter().filter(is_unexplained).map(said).collect()
}

/// Returns the last committed version of the file that differs from `now`, of the last two commits.
fn previous(now: &str) -> anyhow::Result<Option<String>> {
    for commit in ["HEAD", "HEAD~1"] {
        let mut git = Command::new("git");
        git.args(["show", &format!("{commit}:{FILE}")]).current_dir(workspace::root());
        let output = git.output().context("cannot run git")?;
        let text = String::from_utf8_lossy(&output.stdout);
        if output.status.success() && text != now {
            return Ok(Some(text.into_owned()));
        }
    }
    Ok(None)
}

fn crates() -> anyhow::Result<u64> {
    let lock = fs::read_to_string(workspace::root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
    Ok(lock.lines().filter(|line| *line == "[[package]]").count() as u64)
}

/// Returns the size of the stripped release build of the tool, or `None` if it is not built.
fn tool_size(build: bool) -> anyhow::Result<Option<u64>> {
    if build {
        process::run(workspace::cargo().args(["build", "--release", "--package", "warptrace-cli"]))?;
    }
    let target = workspace::target()?;
    let tool = target.join("release").join(format!("warptrace{}", std::env::consts::EXE_SUFFIX));
    if !tool.is_file() {
        return Ok(None);
    }
    let stripped = target.join("test/warptrace-stripped");
    fs::create_dir_all(target.join("test"))?;
    let ended = process::quietly(
        Command::new("strip").arg("-o").arg(&stripped).arg(&tool),
        std::time::Duration::from_secs(60),
    )
    .context("cannot run strip, of binutils")?;
    if !ended.success {
        bail!("strip failed: {}", ended.last_line());
    }
    Ok(Some(fs::metadata(&stripped)?.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(limit: u64, reason: &str) -> Budget {
        BTreeMap::from([("crates".to_owned(), Limit { limit, reason: reason.to_owned() })])
    }

    #[test]
    fn two_percent_more_pass_and_three_fail() {
        let check =
            |value| exceeded(&budget(100, ""), &BTreeMap::from([("crates", value)])).expect("it has a limit");
        assert!(check(102).is_empty());
        assert_eq!(check(103).len(), 1);
        assert!(exceeded(&budget(100, ""), &BTreeMap::from([("links", 1)])).is_err());
    }

    #[test]
    fn a_raised_limit_needs_a_new_reason() {
        let before = budget(100, "first count");
        assert_eq!(raised(&before, &budget(101, "first count")).len(), 1);
        assert_eq!(raised(&before, &budget(101, "")).len(), 1);
        assert!(raised(&before, &budget(101, "a reader of XML")).is_empty());
        assert!(raised(&before, &budget(99, "first count")).is_empty());
    }

    #[test]
    fn the_committed_file_is_read() {
        let text = fs::read_to_string(workspace::root().join(FILE)).expect("the file is committed");
        let budget = parse(&text).expect("it is JSON of this form");
        for name in ["production lines", "test lines", "crates", "tool bytes"] {
            assert!(budget.contains_key(name), "{name}");
        }
        assert!(parse_prose(&text).is_ok());
    }
}
