//! `cargo xtask book`: builds the documentation as a book, and checks all links.
//!
//! The pages are `docs/`, the pages of the root, and `results/`. They link each other by paths in the
//! repository. mdBook requires one folder, so [`stage`] copies the pages and the files that they link.

mod links;
mod mdbook;
mod stage;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};

use crate::process::quietly;
use crate::steps::Outcome;
use crate::workspace;

pub(crate) use links::set_up as set_up_links;

/// Time limit for building the book on a slow machine.
const LIMIT: Duration = Duration::from_secs(300);

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    set_up()?;
    check_links()?;
    let index = build()?;
    println!("the book is in {}", workspace::shown(&index));
    Ok(ExitCode::SUCCESS)
}

/// Checks the links of every page in the repository, and that the pages named in sources exist.
pub(crate) fn check_links() -> anyhow::Result<Outcome> {
    let files = workspace::files()?;
    let faults = links::check_sources(workspace::root(), &files)?;
    ensure!(faults.is_empty(), "pages that sources name do not exist:\n  {}", faults.join("\n  "));
    if let Err(missing) = links::find() {
        return Ok(Outcome::Skipped(format!("{missing}; `cargo xtask setup --tests` installs it")));
    }
    links::check(files.iter().filter(|file| file.ends_with(".md")))?;
    Ok(Outcome::Passed(String::new()))
}

/// Installs mdBook and lychee if they are missing.
pub(crate) fn set_up() -> anyhow::Result<()> {
    set_up_links().map_err(|missing| anyhow!("{}: {}", missing.tried.join("; "), missing.without))?;
    mdbook::set_up()
}

/// Builds the book and returns its first page. Fails if mdBook warns, or if a link in the book is broken.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    let folder = workspace::target()?.join("book");
    let _ = std::fs::remove_dir_all(&folder);
    stage::stage(&workspace::files()?, &folder)?;
    let mut command = Command::new(mdbook::program()?);
    command.arg("build").current_dir(&folder);
    let ended = quietly(&mut command, LIMIT).context("cannot run mdBook")?;
    // mdBook does not stop at warnings.
    let warns = ["WARN", "ERROR", "warning:"].iter().any(|word| ended.said.contains(word));
    if !ended.success || warns {
        bail!("mdBook finds something wrong with the book:\n{}", ended.said);
    }
    let pages = folder.join("book");
    // The page for unknown addresses contains links that depend on the address of the server.
    std::fs::remove_file(pages.join("404.html")).context("mdBook made no 404.html")?;
    links::check([pages.join("**/*.html")])?;
    Ok(pages.join("index.html"))
}
