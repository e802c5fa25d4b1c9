//! `warptrace new`.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};

use crate::arguments;
use crate::output::{say, shown_name};
use crate::whole_file::{Files, watch_signals};

/// Files of `examples/spmv`. `template` links to them, so that they are in this package.
const MANIFEST: &str = include_str!("../../template/manifest.toml");
const FILES: [(&str, &str); 4] = [
    ("build.rs", include_str!("../../template/build.rs")),
    ("src/kernels.rs", include_str!("../../template/kernels.rs")),
    ("src/main.rs", include_str!("../../template/main.rs")),
    (".gitignore", "/target\n*.wtrc\n"),
];

pub(crate) fn run(command: &arguments::New) -> anyhow::Result<()> {
    let folder = &command.folder;
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_name = name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    if !is_name {
        bail!(
            "`{}` does not end in the name of a package: a letter, then letters, digits, `-` and `_`",
            shown_name(folder)
        );
    }
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) || folder.is_file() {
        bail!("{} is there already: name a folder that is not", shown_name(folder));
    }
    let sources = match &command.sources {
        Some(sources) => {
            Some(sources.canonicalize().with_context(|| format!("cannot open {}", shown_name(sources)))?)
        }
        // The folder in which this tool was built, if it is on this machine.
        None => Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .map(Path::to_owned)
            .filter(|root| holds(root)),
    };
    if let Some(sources) = sources.as_deref().filter(|sources| !holds(sources)) {
        bail!(
            "{} does not hold warptrace's sources: it has no tracer-host/warptrace/Cargo.toml",
            shown_name(sources)
        );
    }
    let manifest = manifest(name, sources.as_deref());
    watch_signals()?;
    let mut files = Files::new(folder, &[])?;
    for (file, text) in [("Cargo.toml", manifest.as_str())].into_iter().chain(FILES) {
        files.add(file, |out| out.write_all(text.as_bytes()))?;
    }
    files.publish()?;
    say!("made {}, which traces a kernel and checks its result", shown_name(folder))?;
    say!("\ncd {}", shown_name(folder))?;
    say!("cargo run                            run it on the first GPU, or on the simulator")?;
    say!("warptrace info spmv.wtrc             what is in the trace")?;
    say!("\nThe kernel is in src/kernels.rs: put yours there.")?;
    Ok(())
}

/// Returns true if the folder contains warptrace's sources.
fn holds(root: &Path) -> bool {
    root.join("tracer-host/warptrace/Cargo.toml").is_file()
}

/// Returns the manifest of a package `name` that depends on warptrace in `sources` or in the registry.
fn manifest(name: &str, sources: Option<&Path>) -> String {
    let dependency = |folder: &str| match sources {
        Some(sources) => format!("{{ path = {:?} }}", sources.join(folder).display().to_string()),
        None => format!("{:?}", env!("CARGO_PKG_VERSION")),
    };
    let manifest = MANIFEST
        .replace("name = \"spmv\"", &format!("name = {name:?}"))
        .replace("{ path = \"../../tracer-host/warptrace\" }", &dependency("tracer-host/warptrace"))
        .replace("{ path = \"../../tracer-device/build\" }", &dependency("tracer-device/build"));
    let own = manifest.find("\n# A package of its own").unwrap_or(manifest.len());
    manifest[..own].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_names_the_package_and_where_warptrace_is() {
        let found = manifest("mine", Some(Path::new("/a \"b\"")));
        assert!(found.starts_with("[package]\nname = \"mine\"\n"), "{found}");
        assert!(found.contains(r#"warptrace = { path = "/a \"b\"/tracer-host/warptrace" }"#), "{found}");
        assert!(found.contains(r#"warptrace-build = { path = "/a \"b\"/tracer-device/build" }"#), "{found}");
        assert!(!found.contains("[workspace]") && !found.contains("../"), "{found}");
        let found = manifest("mine", None);
        assert!(found.contains(&format!("\nwarptrace = \"{}\"\n", env!("CARGO_PKG_VERSION"))), "{found}");
    }
}
