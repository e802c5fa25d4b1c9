//! Graphs of MIS and MST: files and generators.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use clap::Args;
use warptrace_workloads::inputs::generate::{self, GenerateError, THESIS_WEIGHTS};
use warptrace_workloads::inputs::{Graph, LoadOptions, load_graph};

use super::SEED;
use crate::subject::Case;
use crate::table::count;

/// Finds the road network of New York in `inputs` or its folder `graphs`, in any format.
pub(super) fn road_ny_file(inputs: Option<&Path>) -> Option<PathBuf> {
    super::find(inputs?, "graphs", |name| name.starts_with("USA-road-d.NY") && name.contains(".gr"))
}

/// Loads the road network. Adds random weights from 1 to 1,000 if the file has none.
pub(super) fn road_ny(path: &Path) -> anyhow::Result<Graph> {
    let (graph, _) = load_graph(path, &LoadOptions::default()).context("cannot load the road network")?;
    if graph.weights().is_some() {
        Ok(graph)
    } else {
        Ok(generate::random_weights(graph, THESIS_WEIGHTS, SEED)?)
    }
}

/// Which graph.
#[derive(Clone, Debug, Args)]
pub(crate) struct GraphInput {
    /// A file (.egr, DIMACS or PACE .gr, SNAP edge list, Matrix Market; plain, gzip or xz), or a generated
    /// graph like one of the thesis's: `road:NODES`, `amazon:NODES`, `internet:NODES` or `rmat12`
    #[arg(long, value_name = "FILE|GENERATOR", default_value = "road:4096")]
    graph: GraphSource,

    /// Seed of a generated graph
    #[arg(long, default_value_t = SEED)]
    seed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum GraphSource {
    File(PathBuf),
    Generated(Generator, u32),
    Rmat12,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generator {
    Road,
    Amazon,
    Internet,
}

impl Generator {
    const ALL: [(&str, Self); 3] =
        [("road", Self::Road), ("amazon", Self::Amazon), ("internet", Self::Internet)];

    fn run(self, nodes: u32, seed: u64) -> Result<Graph, GenerateError> {
        match self {
            Self::Road => generate::usa_road_ny_like(nodes, seed),
            Self::Amazon => generate::amazon0312_like(nodes, seed),
            Self::Internet => generate::internet_like(nodes, seed),
        }
    }
}

impl FromStr for GraphSource {
    type Err = String;

    /// Parses a source. Names of generators take precedence; a file with such a name is written as `./NAME`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "rmat12" {
            return Ok(Self::Rmat12);
        }
        let (name, nodes) = text.split_once(':').unwrap_or((text, ""));
        match Generator::ALL.iter().find(|(known, _)| *known == name) {
            Some((_, generator)) => (nodes.parse().map(|nodes| Self::Generated(*generator, nodes)))
                .map_err(|_| format!("`{name}` is asked for a number of nodes, as in {name}:4096")),
            None if text.is_empty() => Err("a file or a generator is needed, as in road:4096".to_owned()),
            None => Ok(Self::File(text.into())),
        }
    }
}

impl fmt::Display for GraphSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Rmat12 => f.write_str("rmat12"),
            Self::Generated(generator, nodes) => {
                let name = Generator::ALL.iter().find(|(_, known)| known == generator);
                write!(f, "{}:{nodes}", name.map_or("?", |(name, _)| name))
            }
        }
    }
}

impl GraphInput {
    pub(super) fn graph(&self) -> anyhow::Result<Graph> {
        match &self.graph {
            GraphSource::File(path) => match load_graph(path, &LoadOptions::default()) {
                Ok((graph, _)) => Ok(graph),
                // The argument may be a misspelt generator.
                Err(error) if !path.exists() => Err(error).context(
                    "no such graph: --graph takes a file, road:NODES, amazon:NODES, internet:NODES or rmat12",
                ),
                Err(error) => Err(error).context("cannot load the graph"),
            },
            GraphSource::Rmat12 => Ok(generate::rmat12(self.seed)?),
            GraphSource::Generated(generator, nodes) => {
                generator.run(*nodes, self.seed).with_context(|| format!("cannot generate {}", self.graph))
            }
        }
    }

    pub(super) fn with_random_weights(&self, graph: Graph) -> anyhow::Result<Graph> {
        Ok(generate::random_weights(graph, THESIS_WEIGHTS, self.seed)?)
    }

    pub(super) fn named(&self, case: Case) -> Case {
        let case = case.with(&[("graph", &self.graph)]);
        match &self.graph {
            GraphSource::File(path) => case.file(Some(path)),
            _ => case.with(&[("seed", &self.seed)]),
        }
    }
}

impl fmt::Display for GraphInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.graph.fmt(f)
    }
}

pub(super) fn size(graph: &Graph) -> String {
    format!("{} nodes, {} arcs", count(graph.nodes().into()), count(graph.arcs().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_reads_back_as_it_is_written() {
        for text in
            ["road:4096", "amazon:10", "internet:7", "rmat12", "./rmat12", "a/road:4", "USA-road-d.NY.gr"]
        {
            assert_eq!(text.parse::<GraphSource>().unwrap().to_string(), text);
        }
        assert_eq!("road:16".parse(), Ok(GraphSource::Generated(Generator::Road, 16)));
        assert_eq!("./rmat12".parse(), Ok(GraphSource::File("./rmat12".into())));
    }

    #[test]
    fn a_generator_without_its_size_says_how_to_write_it() {
        for text in ["road", "road:", "amazon:many", "internet:-1"] {
            let error = text.parse::<GraphSource>().unwrap_err();
            assert!(error.contains(":4096"), "{text}: {error}");
        }
        assert!("".parse::<GraphSource>().is_err());
    }
}
