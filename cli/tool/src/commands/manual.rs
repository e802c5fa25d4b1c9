//! `warptrace completions` and `warptrace man`: completions for shells, and manual pages.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use clap::CommandFactory;

use crate::arguments::{Arguments, Completions, Man};
use crate::output::{StandardOutput, say, shown_name};
use crate::whole_file::{Files, watch_signals};

pub(crate) fn completions(command: &Completions) -> anyhow::Result<()> {
    // Generated in memory first: clap panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut Arguments::command(), "warptrace", &mut script);
    StandardOutput.write_all(&script)?;
    Ok(())
}

pub(crate) fn man(command: &Man) -> anyhow::Result<()> {
    let folder = &command.output;
    if folder == Path::new("-") {
        bail!("manual pages are several files: name a folder for them");
    }
    let cannot = || format!("cannot write manual pages to {}", shown_name(folder));
    watch_signals().with_context(cannot)?;
    let drafts = tempfile::tempdir().with_context(cannot)?;
    clap_mangen::generate_to(Arguments::command(), drafts.path()).with_context(cannot)?;
    let mut files = Files::new(folder, &[]).with_context(cannot)?;
    for draft in fs::read_dir(drafts.path()).with_context(cannot)? {
        let draft = draft.with_context(cannot)?;
        let page = fs::read(draft.path()).with_context(cannot)?;
        files.add(draft.file_name(), |out| out.write_all(&page)).with_context(cannot)?;
    }
    files.publish()?;
    say!("wrote manual pages to {}", shown_name(folder))?;
    Ok(())
}
