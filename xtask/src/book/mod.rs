//! `cargo xtask book`: the documentation as a book, and a check of all links.
//!
//! The book's pages are `docs/`, README.md and the other pages of the root, and every page of `results/`.
//! They link each other by the paths that they have in the repository, so that they can be read there, too.
//! mdBook wants them in one folder: they are copied to one ([`stage`]), with the files that they link.

mod html;
mod links;
mod mdbook;
mod stage;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::process::quietly;
use crate::workspace;

/// Longer than a slow machine takes for the book.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs the chore.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    check_links()?;
    mdbook::set_up()?;
    let index = build()?;
    println!("the book is in {}", workspace::shown(&index));
    Ok(ExitCode::SUCCESS)
}

/// Checks the links of every page in the repository.
///
/// # Errors
/// Names each link that leads nowhere.
pub(crate) fn check_links() -> anyhow::Result<()> {
    let files = workspace::files()?;
    let mut faults = links::check(workspace::root(), &files)?;
    faults.extend(links::check_sources(workspace::root(), &files)?);
    fail_on(faults, "links lead nowhere")
}

/// Installs mdBook if it is not there.
///
/// # Errors
/// Says why it cannot be installed.
pub(crate) fn set_up() -> anyhow::Result<()> {
    mdbook::set_up()
}

/// Builds the book; returns its first page.
///
/// # Errors
/// If mdBook fails or warns, and if a link in the built book leads nowhere.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    let folder = workspace::target()?.join("book");
    let _ = std::fs::remove_dir_all(&folder);
    stage::stage(workspace::root(), &workspace::files()?, &folder)?;
    let mut command = Command::new(mdbook::program()?);
    command.arg("build").current_dir(&folder);
    let ended = quietly(&mut command, LIMIT).context("cannot run mdBook")?;
    // mdBook goes on after a warning.
    let warns = ["WARN", "ERROR", "warning:"].iter().any(|word| ended.said.contains(word));
    if !ended.success || warns {
        bail!("mdBook finds something wrong with the book:\n{}", ended.said);
    }
    let pages = folder.join("book");
    fail_on(html::check(&pages)?, "links of the built book lead nowhere")?;
    Ok(pages.join("index.html"))
}

fn fail_on(faults: Vec<String>, what: &str) -> anyhow::Result<()> {
    if faults.is_empty() { Ok(()) } else { bail!("{} {what}:\n  {}", faults.len(), faults.join("\n  ")) }
}
