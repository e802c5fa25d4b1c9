//! `warptrace report`.

use std::io::Write;

use anyhow::{Context, bail};
use warptrace_report::{Base, Options, report};

use crate::arguments::Report;
use crate::opened::open;
use crate::output::{bytes, last_name, say, shown_name};
use crate::whole_file::{Target, keep_apart, keep_from_streams, watch_signals};

pub(crate) fn run(command: &Report) -> anyhow::Result<()> {
    let output = match &command.output {
        Some(path) => path.clone(),
        None => command.file.with_extension("html"),
    };
    let base = command.against.as_deref().map(|base| ("the trace of `--against`", base));
    let traces = [Some(("the trace", command.file.as_path())), base];
    let target = Target::new(&output, &traces.into_iter().flatten().collect::<Vec<_>>())?;
    watch_signals()?;
    for folder in &command.sources {
        if !folder.is_dir() {
            bail!("`--source {}` is no folder that can be read", shown_name(folder));
        }
    }
    let opened = open(&command.file)?;
    let trace = &opened.trace;
    let base = command.against.as_deref().map(open).transpose()?.map(|opened| opened.trace);
    let [name, base_name] = [Some(&command.file), command.against.as_ref()]
        .map(|path| path.map_or_else(String::new, |path| last_name(path)));
    let mut options = Options::named(name);
    options.selection = command.selected.selection();
    options.sources.clone_from(&command.sources);
    let base = base.as_ref().map(|trace| Base { trace, name: &base_name });
    let page = report(trace, &options, base)
        .with_context(|| format!("cannot report on {}", shown_name(&command.file)))?;
    let embedded: Vec<_> = page.embedded.iter().map(|path| ("the source", path.as_path())).collect();
    keep_apart(&output, &embedded)?;
    // Further output would be appended to a source that a stream is redirected to.
    embedded.iter().try_for_each(|(_, source)| keep_from_streams(source))?;
    opened.warn();
    if !page.has_events {
        crate::output::tell!("note: there are no events to show; `warptrace info` says what was recorded");
    }
    if let ((), Some(size)) = target.write(|out| out.write_all(page.html.as_bytes()))? {
        say!("page       {} ({}): open it in a browser", shown_name(output), bytes(size))?;
        for path in &page.embedded {
            say!("embedded   {}", shown_name(path))?;
        }
    } else {
        for path in &page.embedded {
            crate::output::tell!("note: the page has lines of {}", shown_name(path));
        }
    }
    for note in &page.notes {
        crate::output::tell!("note: {note}");
    }
    Ok(())
}
