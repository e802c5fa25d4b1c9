//! `warptrace worker`.

use std::sync::Arc;
use std::time::Duration;

use warptrace_query::{Listen, Stop, serve};

use super::query::{stop_by_signal, token_of};
use crate::arguments::Worker;
use crate::files::named_files;
use crate::output;

pub(crate) fn run(command: Worker) -> anyhow::Result<()> {
    let token = command.token_file.as_deref().map(token_of).transpose()?;
    let list =
        |path: &std::path::Path| named_files(&[path.to_path_buf()]).map_err(|error| output::message(&error));
    let listen = Listen {
        address: command.listen,
        roots: command.roots,
        token,
        memory: command.memory as usize * (1 << 20),
        limit: Some(command.timeout).filter(|seconds| *seconds > 0).map(Duration::from_secs),
        list: Arc::new(list),
    };
    let stop = Stop::new();
    stop_by_signal(stop.clone());
    // Standard error shows it at once.
    serve(listen, &stop, |address| output::tell!("listening on {address}"))?;
    Ok(())
}
