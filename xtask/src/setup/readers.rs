//! Python packages for tests: readers of files of `warptrace export`, and NVTX's header for a test program.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use warptrace_build::TOOLCHAIN_FOLDER;

use super::{Missing, SetUpResult};
use crate::process::quietly;
use crate::workspace;

/// PyPI wheels: readers of Parquet, Perfetto and lcov files, a validator of JSON, their dependencies, NVTX.
const WHEELS: [&str; 14] = [
    "duckdb>=1.3",
    "polars>=1.30",
    "polars-runtime-32>=1.30",
    "perfetto>=0.16",
    "protobuf>=6",
    "lcov_cobertura>=2",
    "zstandard>=0.22",
    "jsonschema>=4.18",
    "jsonschema-specifications>=2023.7",
    "referencing>=0.30",
    "rpds-py>=0.10",
    "attrs>=23",
    "typing-extensions>=4.4",
    "nvidia-nvtx-cu12==12.9.79",
];
/// Modules that must be importable.
const IMPORTS: &str = "import duckdb, polars, jsonschema, lcov_cobertura, zstandard; from perfetto.protos.perfetto.trace import perfetto_trace_pb2";
/// Header of NVTX in the folder of the packages.
const NVTX_HEADER: &str = "nvidia/nvtx/include/nvtx3/nvToolsExt.h";
const LIMIT: Duration = Duration::from_secs(600);

const HELP: &str = "install Python 3 with pip and run this again";
const WITHOUT: &str = "Without them tests do not read exports with other tools; nothing else needs them.";

/// Finds the readers, or installs them into the toolchain folder.
pub(super) fn set_up() -> SetUpResult {
    let folder = workspace::root().join(TOOLCHAIN_FOLDER).join("readers");
    let missing = Missing { tried: Vec::new(), help: HELP.to_owned(), without: WITHOUT };
    super::find_or_install(|| find(&folder), &folder, &WHEELS, missing)
}

/// Imports the readers. Returns the reason if that fails.
fn find(folder: &Path) -> Result<String, String> {
    if !folder.join(NVTX_HEADER).is_file() {
        return Err(format!("no {}", workspace::shown(&folder.join(NVTX_HEADER))));
    }
    let mut command = Command::new("python3");
    command.args(["-c", IMPORTS]).env("PYTHONPATH", folder);
    match quietly(&mut command, LIMIT) {
        Ok(ended) if ended.success => {
            Ok(format!("DuckDB, Polars, Perfetto's messages, lcov_cobertura at {}", workspace::shown(folder)))
        }
        Ok(ended) => Err(ended.last_line().to_owned()),
        Err(error) => Err(format!("python3 cannot be run: {error}")),
    }
}
