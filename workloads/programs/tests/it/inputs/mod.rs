//! Tests of the inputs' types, loaders and generators, and of the checkers.
#![expect(clippy::unwrap_used, reason = "helpers of tests, too, may stop the test")]

mod checkers;
mod damage;
mod formats;
mod generators;
mod mesh_check;
mod meshes;
mod real;
mod round_trips;
mod support;
